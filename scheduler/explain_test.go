package scheduler_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// inUTC makes the text of a Reason independent of the time zone.
func inUTC(r scheduler.Reason) string {
	r.Until = r.Until.UTC()
	return r.String()
}

// TestExplain explains host a one second after the lease of its task a0.
func TestExplain(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		opts    scheduler.Options
		queued  []job
		delay   time.Duration
		outcome *scheduler.Outcome // nil means that the lease is not ended
		want    string
	}{
		"a host with nothing queued": {
			outcome: &scheduler.Outcome{}, want: "has nothing queued",
		},
		"a host that is leased": {
			queued: jobs(here, "a1"),
			want:   "waits for its lease, 1 task queued",
		},
		"the delay of a host": {
			queued: jobs(here, "a1", "a2"), outcome: &scheduler.Outcome{},
			want: "waits for the delay of a host until 2026-01-01 00:00:05.000, 2 tasks queued",
		},
		"a Crawl-delay": {
			queued: jobs(here, "a1"), delay: time.Minute, outcome: &scheduler.Outcome{},
			want: "waits for its Crawl-delay until 2026-01-01 00:01:00.000, 1 task queued",
		},
		"a latency": {
			queued: jobs(here, "a1"), outcome: &scheduler.Outcome{Took: 2 * s},
			want: "waits for its latency until 2026-01-01 00:00:10.000, 1 task queued",
		},
		"a back-off": {
			queued: jobs(here, "a1"), outcome: &scheduler.Outcome{Status: 503},
			want: "waits for its back-off until 2026-01-01 00:00:30.000, 1 task queued",
		},
		"a Retry-After": {
			queued: jobs(here, "a1"), outcome: &scheduler.Outcome{RetryAfter: start.Add(9 * s)},
			want: "waits for its Retry-After until 2026-01-01 00:00:09.000, 1 task queued",
		},
		"the time of a task": {
			queued: notBefore(start.Add(7*s), jobs(anywhere, "a1")), outcome: &scheduler.Outcome{},
			want: "waits for the time of its tasks, 1 task queued",
		},
		"the delay of an address": {
			opts:   scheduler.Options{HostDelay: -1, AddrDelay: 5 * s},
			queued: jobs(here, "a1", "b1", "c1"), outcome: &scheduler.Outcome{},
			want: "waits for the delay of its address 10.0.0.1 until 2026-01-01 00:00:05.000, 1 task queued",
		},
		"the back-off of an address": {
			opts:   scheduler.Options{HostDelay: -1, AddrDelay: 5 * s, Backoff: 1, MaxBackoff: time.Hour},
			queued: jobs(here, "a1"), outcome: &scheduler.Outcome{Failed: true},
			want: "waits for the back-off of its address 10.0.0.1 until 2026-01-01 00:00:10.000, " +
				"1 task queued",
		},
		"a host that is ready": {
			opts: scheduler.Options{HostDelay: -1}, queued: jobs(here, "a1"),
			outcome: &scheduler.Outcome{}, want: "is ready, 1 task queued",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sched := scheduler.New[string](tt.opts)
			sched.SetHost("a", scheduler.Host{CrawlDelay: tt.delay})
			add(t, sched, jobs(here, "a0")...)
			lease, _ := sched.TryNext(start)
			add(t, sched, tt.queued...)
			if tt.outcome != nil {
				lease.Done(*tt.outcome)
			}
			if tt.want[:8] != "is ready" {
				got, _ := sched.TryNext(start.Add(s))
				require.Nil(t, got)
			}
			require.Equal(t, tt.want, inUTC(sched.Explain("a")))
		})
	}
}

func TestExplainOtherHosts(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(here, "a1", "b1")...)
	add(t, s, grouped("g", jobs(there, "c1"))...)
	add(t, s, grouped("g", jobs(anywhere, "d1"))...)
	add(t, s, jobs(ip(3), "e1", "f1")...)
	s.TryNext(start)
	s.TryNext(start)
	for host, want := range map[string]string{
		"b": "waits for the lease of its address 10.0.0.1, 1 task queued",
		"c": `waits for the lease of its group "g", 1 task queued`,
		"e": "is ready, 1 task queued",
		"f": "waits for its turn at its address 10.0.0.3, 1 task queued",
		"x": "is not known",
	} {
		require.Equal(t, want, inUTC(s.Explain(host)))
	}
}

// TestExplainHeldGroup has a group that is held for b, whose address is not open yet.
func TestExplainHeldGroup(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: time.Second, AddrDelay: 9 * time.Second, LatencyFactor: -1})
	add(t, s, grouped("g", jobs(here, "a1", "b1"))...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})
	add(t, s, grouped("g", jobs(anywhere, "c1"))...)
	got := visits(s, goesWell)
	require.Equal(t, []string{"1s c1", "9s b1"}, got)

	add(t, s, jobs(there, "x1")...)
	lease, _ = s.TryNext(start.Add(time.Minute))
	require.Equal(t, "x1", lease.Item())
	add(t, s, grouped("g", jobs(anywhere, "c2"))...)
	second, _ := s.TryNext(start.Add(time.Minute))
	second.Done(scheduler.Outcome{})
	add(t, s, grouped("g", jobs(there, "d1"))...) // moves to the waitlist of g, and then waits for x
	add(t, s, grouped("g", jobs(anywhere, "e1"))...)
	lease.Done(scheduler.Outcome{})
	third, _ := s.TryNext(start.Add(time.Minute + 2*time.Second))
	require.Equal(t, "e1", third.Item(), "d waits for its address first")
}

func TestHosts(t *testing.T) {
	s := scheduler.New[int](scheduler.Options{})
	for i := range 1000 {
		host := fmt.Sprint(i)
		s.SetHost(host, scheduler.Host{Addr: ip(i), Group: "g"})
		require.NoError(t, s.Add(scheduler.Task[int]{Host: host}))
	}
	all := maps.Collect(s.Reasons())
	require.Len(t, all, 1000)
	for host, reason := range all {
		require.Equal(t, s.Explain(host), reason)
	}
	for range s.Reasons() { // an iteration may end early, and the Scheduler may be used during it
		s.SetHost("0", scheduler.Host{Delay: time.Hour})
		break
	}
	for host := range s.Reasons() {
		require.NoError(t, s.Add(scheduler.Task[int]{Host: host}))
	}
	require.Equal(t, 2000, s.Stats().Queued)
}

// TestExplainTaskOnTheWay has a lease that has given back its turn: its task is not queued.
func TestExplainTaskOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{MaxHostQueue: 1})
		s.SetHost("a", scheduler.Host{Addr: here, CrawlDelay: time.Minute})
		add(t, s, ranked("a1")...)
		lease := next(t, s)
		wait(t, s, "b")
		held, err := s.Wait(lease.Context(t.Context()), "c")
		require.NoError(t, err)
		require.Zero(t, s.Explain("a").Queued)
		require.Equal(t, "has nothing queued", s.Explain("a").String())
		add(t, s, ranked("a1")...)
		require.Equal(t, 1, s.Explain("a").Queued)
		require.Len(t, s.Withdraw("a"), 1)
		lease.Requeue(scheduler.Outcome{}, time.Time{})
		held.Done(scheduler.Outcome{})
		require.Equal(t, 1, s.Explain("a").Queued)
		require.Equal(t, here, s.Explain("a").Addr)
	})
}

// TestReasonsAreThoseOfExplain has leases of different times on hosts and on their addresses, in
// several batches of the walk.
func TestReasonsAreThoseOfExplain(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1, MaxPerHost: 2, MaxPerAddr: 3, LeaseTimeout: -1})
	const hosts = 1000
	for i := range hosts {
		host := fmt.Sprint(i)
		require.NoError(t, s.SetHost(host, scheduler.Host{Addr: ip(i / 2)}))
		for range 3 {
			require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
		}
	}
	for leases := 0; leases < hosts/2*3; leases++ {
		lease, _ := s.TryNext(start.Add(time.Duration(leases) * time.Second))
		require.NotNil(t, lease)
	}
	seen := 0
	for host, reason := range s.Reasons() {
		require.Equal(t, s.Explain(host), reason)
		seen++
	}
	require.Equal(t, hosts, seen)
}
