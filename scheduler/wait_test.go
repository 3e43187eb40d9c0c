package scheduler_test

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// waitFor calls Wait in a goroutine and ends the lease immediately.
func waitFor(ctx context.Context, s *scheduler.Scheduler[string], host string) <-chan result {
	return async(func() (*scheduler.Lease[string], error) { return s.Wait(ctx, host) })
}

func TestLeasesEndWhenNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, jobs(here, "a1", "b1")...)
		var got []string
		var visits sync.WaitGroup
		for lease, err := range s.Leases(t.Context()) {
			require.NoError(t, err)
			got = append(got, lease.Item())
			visits.Go(func() {
				time.Sleep(time.Second)
				if lease.Item() == "b1" {
					add(t, s, jobs(there, "c1")...)
				}
				lease.Done(scheduler.Outcome{})
			})
		}
		visits.Wait()
		require.Equal(t, []string{"a1", "b1", "c1"}, got)
	})
}

func TestLeasesYieldAnErrorOnce(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(here, "a1")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got []error
	for lease, err := range s.Leases(ctx) {
		require.Nil(t, lease)
		got = append(got, err)
	}
	require.Equal(t, []error{context.Canceled}, got)
	for lease, err := range s.Leases(t.Context()) { // the loop may be left
		require.NoError(t, err)
		lease.Done(scheduler.Outcome{})
		break
	}
}

// TestAHolderMayWaitForLong: a lease whose holder waits, such as for a host that has asked for more
// time than the timeout, is not lost, nor is the queue drained. The timeout starts again when all its
// calls of Wait have returned.
func TestAHolderMayWaitForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{LeaseTimeout: 10 * time.Minute})
		add(t, s, append(jobs(here, "a1"), jobs(there, "b1")...)...)
		setDelay(s, "x", time.Hour)
		waits, other := next(t, s), next(t, s)
		ctx := waits.Context(t.Context())
		turn, err := s.Wait(ctx, "x")
		require.NoError(t, err)
		turn.Done(scheduler.Outcome{})
		drained := background(t.Context(), s)
		waitFor(ctx, s, "x") // for an hour
		waitFor(ctx, s, "x") // for two
		require.NoError(t, s.Verify())
		time.Sleep(2*time.Hour + 9*time.Minute)
		require.EqualValues(t, 1, s.Stats().Lost, "others have their timeouts")
		other.Done(scheduler.Outcome{})
		require.Empty(t, drained)
		waits.Requeue(scheduler.Outcome{}, time.Time{})
		require.Equal(t, "a1", (<-drained).item)

		add(t, s, jobs(here, "a2")...)
		_, err = s.Wait(next(t, s).Context(t.Context()), "x")
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		s.TryNext(time.Now())
		require.EqualValues(t, 3, s.Stats().Lost)
		require.NoError(t, s.Verify())
	})
}

// TestTooLateAfterTheOwnTurn: whether a deadline is too early is known at once, also if it is the turn
// given back that sets the delay.
func TestTooLateAfterTheOwnTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Hour})
		add(t, s, jobs(here, "a1")...)
		lease := next(t, s)
		lease.Arrived(time.Now())
		ctx, cancel := context.WithTimeout(lease.Context(t.Context()), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := s.Wait(ctx, "a")
		require.ErrorAs(t, err, new(*scheduler.WaitError))
		require.Zero(t, time.Since(began))
		require.NoError(t, s.Verify())
	})
}

// TestWaitSpacesAHost has simultaneous callers for two hosts of one address and one of another.
func TestWaitSpacesAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := scheduler.New[string](scheduler.Options{HostDelay: 3 * time.Second, AddrDelay: time.Second})
		s.SetHost("a", scheduler.Host{Addr: here})
		s.SetHost("b", scheduler.Host{Addr: here})
		var mu sync.Mutex
		var got []string
		var callers sync.WaitGroup
		for i, host := range []string{"a", "a", "b", "c", "a"} {
			callers.Go(func() {
				lease, err := s.Wait(t.Context(), host)
				assert.NoError(t, err)
				assert.Equal(t, host, lease.Host())
				assert.Zero(t, lease.Item())
				mu.Lock()
				got = append(got, fmt.Sprint(time.Since(start), " ", host, i))
				mu.Unlock()
				lease.Done(scheduler.Outcome{})
			})
			synctest.Wait()
		}
		callers.Wait()
		require.Equal(t, []string{"0s a0", "0s c3", "1s b2", "3s a1", "6s a4"}, got)
		require.Equal(t, 0, s.Stats().Queued)
		require.EqualValues(t, 5, s.Stats().Given)
	})
}

// TestWaitComesBeforeTasks, so that holders of leases can wait for another host even if all other
// hosts are busy with tasks.
func TestWaitComesBeforeTasks(t *testing.T) {
	for name, group := range map[string]string{"at an address": "", "in a group as well": "g"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New[string](scheduler.Options{HostDelay: time.Second, LeaseTimeout: -1})
				add(t, s, grouped(group, jobs(here, "a1", "b1", "b2", "c1"))...)
				lease := next(t, s)
				require.Equal(t, "a1", lease.Item())
				late, early := waitFor(t.Context(), s, "c"), waitFor(t.Context(), s, "b")
				lease.Done(scheduler.Outcome{})
				require.Equal(t, result{after: time.Second}, <-late, "c was first; no tasks are leased")
				require.Equal(t, result{after: 2 * time.Second}, <-early)
				require.Equal(t, 3, s.Stats().Queued, "Wait takes no tasks")
				require.Equal(t, "c1", next(t, s).Item())
			})
		})
	}
}

// TestWaitAndNextTogether has callers of both, and each gets its own kind of lease.
func TestWaitAndNextTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, jobs(here, "a1")...)
		next(t, s).Done(scheduler.Outcome{})
		tasks := background(t.Context(), s)
		require.Equal(t, result{err: scheduler.ErrDrained}, <-tasks)
		waiting := waitFor(t.Context(), s, "a")
		tasks = background(t.Context(), s)
		require.Equal(t, result{after: 5 * time.Second}, <-waiting)
		require.Equal(t, result{err: scheduler.ErrDrained, after: 5 * time.Second}, <-tasks,
			"a caller of Wait could still add a task")
		require.EqualValues(t, 1, s.Stats().Waits)
		require.Equal(t, 5*time.Second, s.Stats().Waited)
	})
}

// TestContextEndsWait has callers that give up while waiting; the others continue.
func TestContextEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		s.SetHost("a", scheduler.Host{Addr: here, Group: "g"})
		lease, err := s.Wait(t.Context(), "a")
		require.NoError(t, err)
		lease.Done(scheduler.Outcome{})
		var results [4]<-chan result
		var cancel [4]context.CancelFunc
		for i := range results {
			var ctx context.Context
			ctx, cancel[i] = context.WithCancel(t.Context())
			results[i] = waitFor(ctx, s, "a")
		}
		time.Sleep(time.Second)
		for _, i := range []int{0, 2, 3} {
			cancel[i]()
			require.Equal(t, result{err: context.Canceled, after: time.Second}, <-results[i])
		}
		require.Equal(t, result{after: 5 * time.Second}, <-results[1])
		cancel[1]()
		_, err = s.Next(t.Context())
		require.ErrorIs(t, err, scheduler.ErrDrained)
		_, err = s.Wait(t.Context(), "b")
		require.NoError(t, err)
	})
}

// TestLeaseAndCancelRace ends a context when a lease becomes available: no lease is lost.
func TestLeaseAndCancelRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = time.Hour
		s := scheduler.New[string](scheduler.Options{HostDelay: delay, LeaseTimeout: -1})
		for range 200 {
			lease, err := s.Wait(t.Context(), "a")
			require.NoError(t, err, "the previous lease was lost")
			lease.Done(scheduler.Outcome{})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(delay, cancel)
			if lease, err := s.Wait(ctx, "a"); err == nil {
				lease.Done(scheduler.Outcome{})
			}
			cancel()
		}
	})
}

// TestWaitFailsEarly: if the deadline cannot be met, Wait fails immediately.
func TestWaitFailsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Minute, AddrDelay: time.Hour})
		for _, host := range []string{"a", "b"} {
			s.SetHost(host, scheduler.Host{Addr: here, Group: "g"})
		}
		lease, err := s.Wait(t.Context(), "a")
		require.NoError(t, err)
		lease.Done(scheduler.Outcome{})
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Minute)
		defer cancel()
		before := time.Now()
		_, err = s.Wait(ctx, "b")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "scheduler: b may not be visited before ")
		require.True(t, os.IsTimeout(err))
		require.Zero(t, time.Since(before))
		time.Sleep(59*time.Minute + 1)
		for _, host := range []string{"b", "c"} { // the deadline has passed: c is ready, but was not asked
			_, err = s.Wait(ctx, host)
			waited := new(scheduler.WaitError)
			require.ErrorAs(t, err, &waited)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, waited.Local())
			require.Equal(t, host, waited.Host)
			require.Equal(t, host == "c", waited.Until.Equal(time.Now()))
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute+1)
		defer cancel()
		_, err = s.Wait(ctx, "b")
		require.NoError(t, err)
		cancel()
		_, err = s.Wait(ctx, "b")
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestACallerWhoGivesUpCostsNoTurn: a, b and c share an address, a group, or both, and callers of Wait
// for a give up before each of its turns.
func TestACallerWhoGivesUpCostsNoTurn(t *testing.T) {
	for _, shared := range []scheduler.Host{{Addr: here}, {Group: "g"}, {Addr: here, Group: "g"}} {
		for _, callers := range []int{0, 1, 2} {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New[string](scheduler.Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
				for _, host := range []string{"b", "c", "a"} {
					s.SetHost(host, shared)
					for range 30 {
						require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
					}
				}
				given := map[string]int{}
				for range 30 {
					lease, err := s.Next(t.Context())
					require.NoError(t, err)
					given[lease.Host()]++
					for range callers {
						ctx, cancel := context.WithCancel(t.Context())
						call := waitFor(ctx, s, "a")
						synctest.Wait()
						require.NoError(t, s.Verify())
						cancel()
						<-call
						require.NoError(t, s.Verify())
					}
					lease.Done(scheduler.Outcome{})
				}
				require.Equal(t, map[string]int{"a": 10, "b": 10, "c": 10}, given, "%+v, %d", shared, callers)
			})
		}
	}
}

// TestLeasesOfSeveralSchedulers: whoever waits holds no turn of another Scheduler that somebody else
// waits for.
func TestLeasesOfSeveralSchedulers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
		tenants := scheduler.New[int](scheduler.Options{HostDelay: time.Second})
		require.NoError(t, sites.Add(scheduler.Task[string]{Host: "site"}))
		require.NoError(t, tenants.Add(scheduler.Task[int]{Host: "tenant"}))
		site := next(t, sites)
		tenant, err := tenants.Next(t.Context())
		require.NoError(t, err)
		both := tenant.Context(site.Context(t.Context()))

		resume := both.Value(struct{ Yield struct{} }{}).(func() func())()
		require.False(t, site.Held())
		require.False(t, tenant.Held())
		lease, err := sites.Wait(t.Context(), "site")
		require.NoError(t, err)
		resume()
		time.Sleep(11 * time.Minute)
		sites.TryNext(time.Now())
		require.EqualValues(t, 2, sites.Stats().Lost, "the timeouts start again after the wait")
		lease.Done(scheduler.Outcome{})

		// Each of two callers holds what the other one waits for.
		require.NoError(t, sites.Add(scheduler.Task[string]{Host: "site"}))
		require.NoError(t, tenants.Add(scheduler.Task[int]{Host: "tenant"}))
		site = next(t, sites)
		tenant, err = tenants.Next(t.Context())
		require.NoError(t, err)
		began := time.Now()
		ended := make(chan error, 2)
		go func() {
			turn, err := tenants.Wait(site.Context(t.Context()), "tenant")
			turn.Done(scheduler.Outcome{})
			site.Done(scheduler.Outcome{Skipped: true})
			ended <- err
		}()
		go func() {
			turn, err := sites.Wait(tenant.Context(t.Context()), "site")
			turn.Done(scheduler.Outcome{})
			tenant.Done(scheduler.Outcome{Skipped: true})
			ended <- err
		}()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		require.LessOrEqual(t, time.Since(began), time.Minute, "neither waits for a timeout")
		require.NoError(t, sites.Verify())
		require.NoError(t, tenants.Verify())
	})
}

// TestNeverIsNoTime: the error of a host that is paused forever names no date.
func TestNeverIsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{MaxRetryAfter: -1})
		lease, err := s.Wait(t.Context(), "a")
		require.NoError(t, err)
		lease.Done(scheduler.Outcome{RetryAfter: time.Now().Add(math.MaxInt64)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = s.Wait(ctx, "a")
		require.EqualError(t, err, "scheduler: a is paused forever, by what it asked for or what was set for it")
	})
}

// TestWaitComesBeforeATurn: x has had its turn at its group, and waits for the address, and nobody
// calls Next when that is free.
func TestWaitComesBeforeATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
		lease := func(want string) *scheduler.Lease[string] {
			lease, _ := s.TryNext(time.Now())
			require.Equal(t, want != "", lease != nil)
			if lease != nil {
				require.Equal(t, want, lease.Item())
			}
			return lease
		}
		add(t, s, grouped("g", jobs(there, "y1"))...)
		y := lease("y1")
		add(t, s, grouped("g", jobs(here, "x1"))...)
		lease("") // x1 waits for the group
		add(t, s, jobs(here, "z1")...)
		lease("z1").Done(scheduler.Outcome{RetryAfter: time.Now().Add(time.Minute)})
		y.Done(scheduler.Outcome{})
		time.Sleep(time.Second)
		lease("") // x1 waits for the address
		add(t, s, grouped("g", jobs(there, "y2"))...)
		lease("y2")
		s.SetHost("w", scheduler.Host{Addr: here})
		waiting := waitFor(t.Context(), s, "w")
		require.Equal(t, result{after: time.Minute - time.Second}, <-waiting)
	})
}

// TestARefusedWaitChangesNothing: calls that cannot get their turn in time neither count as waits nor take
// the turn of a host in the same group.
func TestARefusedWaitChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[int](scheduler.Options{
			HostDelay: time.Millisecond, AddrDelay: 70 * time.Millisecond, GroupDelay: 50 * time.Millisecond,
			MaxPerAddr: 1, MaxPerGroup: 1,
		})
		addr := netip.MustParseAddr("10.0.0.1")
		for host, h := range map[string]scheduler.Host{
			"a1": {Addr: addr, Group: "g"}, "b1": {Addr: addr}, "b2": {Addr: addr},
			"c1": {Group: "g"}, "c2": {Group: "g"}, "c3": {Group: "g"}, "d": {Group: "g"},
		} {
			require.NoError(t, s.SetHost(host, h))
			for i := range 1000 {
				if host != "d" {
					require.NoError(t, s.Add(scheduler.Task[int]{Host: host, Item: i}))
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		got := map[string]int{}
		var taking sync.WaitGroup
		taking.Go(func() {
			for l, err := s.Next(ctx); err == nil; l, err = s.Next(ctx) {
				got[l.Host()]++
				l.Done(scheduler.Outcome{})
			}
		})
		refuse := func() {
			late, stop := context.WithTimeout(t.Context(), -time.Second)
			defer stop()
			_, err := s.Wait(late, "d")
			require.ErrorAs(t, err, new(*scheduler.WaitError))
			time.Sleep(5 * time.Millisecond)
		}
		for ctx.Err() == nil {
			refuse()
		}
		taking.Wait()
		require.Positive(t, got["a1"])
		before := s.Stats().Waits
		refuse()
		require.Equal(t, before, s.Stats().Waits)
	})
}
