package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// wait calls Wait.
func wait(t *testing.T, s *scheduler.Scheduler[string], host string) *scheduler.Lease[string] {
	t.Helper()
	lease, err := s.Wait(t.Context(), host)
	require.NoError(t, err)
	return lease
}

// follow makes the clock of the computer that of s, with a visit of another host.
func follow(t *testing.T, s *scheduler.Scheduler[string]) {
	t.Helper()
	wait(t, s, "other").Done(scheduler.Outcome{})
}

// TestSettingsAfterADayWithoutEvents has calls that come long after the last event: they act now,
// not then.
func TestSettingsAfterADayWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		follow(t, s)
		time.Sleep(25 * time.Hour)
		s.SetHost("a", scheduler.Host{Addr: here, CrawlDelay: time.Minute})
		s.SetHost("b", scheduler.Host{Addr: here})
		began := time.Now()
		wait(t, s, "a").Done(scheduler.Outcome{})
		wait(t, s, "b").Done(scheduler.Outcome{})
		require.Equal(t, 5*time.Second, time.Since(began), "they share an address")
		wait(t, s, "a").Done(scheduler.Outcome{})
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, here, s.Explain("b").Addr)
	})
}

func TestRetryAfterCountsFromTheEndOfTheVisit(t *testing.T) {
	for _, took := range []time.Duration{time.Second, 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{MaxRetryAfter: time.Minute})
			lease := wait(t, s, "a")
			time.Sleep(took)
			ended := time.Now()
			lease.Done(scheduler.Outcome{Start: ended, RetryAfter: ended.Add(time.Hour)})
			wait(t, s, "a")
			require.Equal(t, time.Minute, time.Since(ended), "%v", took)
		})
	}
}

func TestStartAfterMoreThanADayIsNotAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{LeaseTimeout: -1})
		lease := wait(t, s, "a")
		time.Sleep(25 * time.Hour)
		ended := time.Now()
		lease.Done(scheduler.Outcome{Start: ended})
		wait(t, s, "a")
		require.Equal(t, 5*time.Second, time.Since(ended))
	})
}

func TestSettingsAfterALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{MaxRetryAfter: -1})
		s.SetHost("a", scheduler.Host{Addr: here, CrawlDelay: 10 * time.Minute})
		wait(t, s, "a").Done(scheduler.Outcome{Status: 429, RetryAfter: time.Now().Add(25 * time.Hour)})
		wait(t, s, "a").Done(scheduler.Outcome{Status: 429})
		ended := time.Now()
		time.Sleep(11 * time.Minute)
		r := s.Explain("a")
		require.Equal(t, 2, r.Failures)
		require.Equal(t, here, r.Addr)
		wait(t, s, "a").Done(scheduler.Outcome{})
		wait(t, s, "a")
		require.Equal(t, 21*time.Minute, time.Since(ended))
	})
}

func TestReachAddressWhoseDelayHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		s.SetHost("a", scheduler.Host{Addr: here})
		wait(t, s, "a").Done(scheduler.Outcome{})
		lease := wait(t, s, "b")
		time.Sleep(time.Minute) // to connect
		require.True(t, lease.Reach(here))
	})
}

func TestReachAddressThatOnlyItsHostWaitsFor(t *testing.T) {
	for _, first := range []bool{false, true} { // whether SetHost has told the address already
		s := scheduler.New[string](scheduler.Options{HostDelay: -1, MaxPerHost: 2, MaxPerAddr: 2})
		add(t, s, ranked("a1", "a1", "a1")...)
		lease, _ := s.TryNext(start)
		if first {
			s.SetHost("a", scheduler.Host{Addr: here})
		}
		require.True(t, lease.Reach(here), first)
	}
}

func TestLostLeaseIsNoticedByCallersOfWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{LeaseTimeout: time.Minute})
		s.SetHost("x", scheduler.Host{Addr: here})
		s.SetHost("y", scheduler.Host{Addr: here, CrawlDelay: time.Hour})
		wait(t, s, "y").Done(scheduler.Outcome{})
		began := time.Now()
		y := async(func() (*scheduler.Lease[string], error) { return s.Wait(t.Context(), "y") })
		time.Sleep(10 * time.Second)
		add(t, s, job{Task: scheduler.Task[string]{Host: "x"}})
		next(t, s) // never Done
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 1, s.Stats().Lost)
		<-y
		require.Equal(t, time.Hour, time.Since(began))
	})
}

// TestHeldInASimulation has a time of its own, which that of the computer must not disturb.
func TestHeldInASimulation(t *testing.T) {
	for _, now := range []time.Time{time.Now().Add(-24 * time.Hour), start.AddDate(100, 0, 0)} {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, ranked("a1", "b1")...)
		lease, _ := s.TryNext(now)
		require.True(t, lease.Held())
		s.TryNext(now.Add(time.Hour))
		require.False(t, lease.Held(), "it is lost")
	}
}

// TestDoneOfALostLease has a lease that no event has ended yet.
func TestDoneOfALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, ranked("a1")...)
		lease := next(t, s)
		time.Sleep(time.Hour)
		lease.Requeue(scheduler.Outcome{}, time.Time{})
		require.Zero(t, s.Stats().Queued)
		require.EqualValues(t, 1, s.Stats().Lost)
	})
}
