package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// until returns when a host may be visited.
func until(t *testing.T, s *scheduler.Scheduler[string], host string) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_, err := s.Wait(ctx, host)
	var late *scheduler.WaitError
	require.ErrorAs(t, err, &late)
	return late.Until
}

// TestFailuresOfAnAddressAddUp visits an address at which all hosts fail with calls of Wait, and so
// without tasks, some time after each pause is over.
func TestFailuresOfAnAddressAddUp(t *testing.T) {
	for _, same := range []bool{true, false} { // whether it is always the same host
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			host := func(i int) string {
				name := "a"
				if !same {
					name = fmt.Sprint(i)
				}
				s.SetHost(name, scheduler.Host{Addr: here})
				return name
			}
			for i := range 5 {
				pause := time.Minute << i
				wait(t, s, host(i)).Done(scheduler.Outcome{Status: 429, RetryAfter: time.Now().Add(time.Hour)})
				s.SetHost("probe", scheduler.Host{Addr: here})
				require.Equal(t, pause, time.Until(until(t, s, "probe")), "failure %d", i)
				time.Sleep(time.Hour + time.Second)
			}
			time.Sleep(25 * time.Hour)
			wait(t, s, host(9)).Done(scheduler.Outcome{Status: 429, RetryAfter: time.Now().Add(time.Hour)})
			s.SetHost("probe", scheduler.Host{Addr: here})
			require.Equal(t, time.Minute, time.Until(until(t, s, "probe")), "a day later they are forgotten")
		})
	}
}

// TestFailingAddressesAreBounded has a new failing address at each visit.
func TestFailingAddressesAreBounded(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxIdleHosts: 10})
	now := start
	for i := range 1000 {
		s.SetHost("a", scheduler.Host{Addr: ip(i)})
		require.NoError(t, s.Add(scheduler.Task[string]{Host: "a"}))
		lease, _ := s.TryNext(now)
		lease.Done(scheduler.Outcome{Failed: true})
		now = now.Add(2 * time.Hour)
		s.TryNext(now)
	}
	require.Less(t, s.Stats().Addrs, 100)
	now = now.Add(48 * time.Hour)
	s.TryNext(now)
	for range 100 {
		s.SetHost("z", scheduler.Host{})
	}
	require.LessOrEqual(t, s.Stats().Addrs, 1)
}

// TestHostsWithoutVisitsAreForgotten uses hosts that are new each time, without a lease.
func TestHostsWithoutVisitsAreForgotten(t *testing.T) {
	const hosts = 5000
	for name, use := range map[string]func(s *scheduler.Scheduler[string], host string, now time.Time){
		"Withdraw": func(s *scheduler.Scheduler[string], host string, _ time.Time) {
			require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
			require.Len(t, s.Withdraw(host), 1)
		},
		"Restore": func(s *scheduler.Scheduler[string], host string, now time.Time) {
			require.NoError(t, s.Restore(scheduler.Entry{Host: host}, now))
		},
		"Restore of addresses": func(s *scheduler.Scheduler[string], host string, now time.Time) {
			var n int
			fmt.Sscan(host, &n)
			require.NoError(t, s.Restore(scheduler.Entry{Addr: ip(n)}, now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			now := start
			for i := range hosts {
				now = now.Add(48 * time.Hour)
				s.TryNext(now)
				use(s, fmt.Sprint(i), now)
			}
			require.Less(t, s.Stats().Hosts+s.Stats().Addrs, 100)
		})
	}
}

// TestPausedHostsDoNotDisplaceSettings: hosts with a Retry-After cannot be forgotten, so they must
// not use up the room of those that are kept.
func TestPausedHostsDoNotDisplaceSettings(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxIdleHosts: 100})
	now := start
	visit := func(host string, o scheduler.Outcome) {
		require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
		lease, wait := s.TryNext(now)
		for ; lease == nil; lease, wait = s.TryNext(now) {
			now = now.Add(wait)
		}
		lease.Done(o)
	}
	visit("kept", scheduler.Outcome{Failed: true})
	for i := range 1000 {
		visit(fmt.Sprint(i), scheduler.Outcome{Status: 429, RetryAfter: start.Add(20 * time.Hour)})
	}
	now = now.Add(time.Hour)
	for range 1000 {
		visit("other", scheduler.Outcome{})
	}
	require.Equal(t, 1, s.Explain("kept").Failures)
	now = now.Add(20 * time.Hour)
	for i := range 5000 {
		visit(fmt.Sprint("after", i), scheduler.Outcome{})
		now = now.Add(5 * time.Second)
	}
	require.LessOrEqual(t, s.Stats().Hosts, 300, "after the pauses, the bound applies")
}
