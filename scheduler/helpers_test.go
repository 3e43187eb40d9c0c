package scheduler_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ip returns the n-th address.
func ip(n int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 10<<24+uint32(n))
	return netip.AddrFrom4(b)
}

var (
	anywhere    netip.Addr
	here, there = ip(1), ip(2)
)

// A job is a task with the settings of its host, to be added together.
type job struct {
	scheduler.Task[string]
	host scheduler.Host
}

// jobs returns jobs for items such as "a1", for host "a", all at one address.
func jobs(addr netip.Addr, items ...string) (jobs []job) {
	for _, item := range items {
		task := scheduler.Task[string]{Host: item[:1], Item: item}
		jobs = append(jobs, job{task, scheduler.Host{Addr: addr}})
	}
	return jobs
}

// ranked returns jobs for items such as "a7", for host "a" with priority 7.
func ranked(items ...string) (jobs []job) {
	for _, item := range items {
		task := scheduler.Task[string]{Host: item[:1], Priority: item[1] - '0', Item: item}
		jobs = append(jobs, job{Task: task})
	}
	return jobs
}

// grouped puts the hosts of jobs into a group.
func grouped(group string, jobs []job) []job {
	for i := range jobs {
		jobs[i].host.Group = group
	}
	return jobs
}

// notBefore sets the NotBefore of jobs.
func notBefore(at time.Time, jobs []job) []job {
	for i := range jobs {
		jobs[i].NotBefore = at
	}
	return jobs
}

func add(t *testing.T, s *scheduler.Scheduler[string], jobs ...job) {
	t.Helper()
	for _, j := range jobs {
		if j.host != (scheduler.Host{}) {
			s.SetHost(j.Host, j.host)
		}
		require.NoError(t, s.Add(j.Task))
	}
}

// setDelay sets the delay of a host.
func setDelay(s *scheduler.Scheduler[string], host string, d time.Duration) {
	s.SetHost(host, scheduler.Host{Delay: d})
}

func next(t *testing.T, s *scheduler.Scheduler[string]) *scheduler.Lease[string] {
	t.Helper()
	lease, err := s.Next(t.Context())
	require.NoError(t, err)
	return lease
}

// visits leases all remaining tasks as early as possible, and returns the time and the item of
// every lease. Visits take no time, and have the outcome that visit returns.
func visits(
	s *scheduler.Scheduler[string], visit func(item string) scheduler.Outcome,
) (visits []string) {
	for now := start; s.Stats().Queued > 0; {
		lease, wait := s.TryNext(now)
		if lease == nil {
			now = now.Add(wait)
			continue
		}
		visits = append(visits, now.Sub(start).String()+" "+lease.Item())
		lease.Done(visit(lease.Item()))
	}
	return visits
}

func goesWell(string) scheduler.Outcome { return scheduler.Outcome{} }

// result is what a call in another goroutine returned, and after what time.
type result struct {
	item  string
	err   error
	after time.Duration
}

// background calls Next in a goroutine and ends the lease immediately.
func background(ctx context.Context, s *scheduler.Scheduler[string]) <-chan result {
	return async(func() (*scheduler.Lease[string], error) { return s.Next(ctx) })
}

// async is background for any call that returns a lease.
func async(call func() (*scheduler.Lease[string], error)) <-chan result {
	start, results := time.Now(), make(chan result, 1)
	go func() {
		lease, err := call()
		r := result{err: err, after: time.Since(start)}
		if lease != nil {
			r.item = lease.Item()
			lease.Done(scheduler.Outcome{})
		}
		results <- r
	}()
	synctest.Wait()
	return results
}
