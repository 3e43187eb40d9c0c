package scheduler_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// TestHoldersOfALeaseWaitForTheirHost: requests on the way to that of the task have turns of their
// own, the first one at once.
func TestHoldersOfALeaseWaitForTheirHost(t *testing.T) {
	for name, host := range map[string]string{"the same host": "a", "another one at its address": "b"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New[string](scheduler.Options{HostDelay: time.Second, AddrDelay: time.Second})
				add(t, s, jobs(here, "a1", "a2", "b1")...)
				start := time.Now()
				lease := next(t, s)
				ctx := lease.Context(t.Context())
				for i := range 3 {
					turn, err := s.Wait(ctx, host)
					require.NoError(t, err)
					require.Equal(t, time.Duration(i)*time.Second, time.Since(start))
					require.True(t, turn.Held())
					turn.Done(scheduler.Outcome{})
				}
				require.False(t, lease.Held())
				require.False(t, lease.Reach(there))
				require.Equal(t, 1, s.Stats().Out, "the task")
				lease.Done(scheduler.Outcome{Failed: true})
				require.Zero(t, s.Explain("a").Failures, "the outcome belongs to no turn")
				require.Zero(t, s.Stats().Out)
			})
		})
	}
}

// TestResumeTwice: a layer that resumes early may also have deferred that.
func TestResumeTwice(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(here, "a1", "a2")...)
	lease, _ := s.TryNext(start)
	ctx := lease.Context(t.Context())
	resume := ctx.Value(struct{ Yield struct{} }{}).(func() func())()
	for range 3 {
		resume()
		require.NoError(t, s.Verify())
	}
	lease.Done(scheduler.Outcome{})
	require.NoError(t, s.Verify())
	require.Equal(t, []string{"0s a2"}, visits(s, goesWell))
}

// TestHoldersOfLeasesWaitForEachOther: two callers that each hold what the other one needs.
func TestHoldersOfLeasesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
		add(t, s, jobs(anywhere, "a1", "b1")...)
		first, second := next(t, s), next(t, s)
		other := map[string]string{"a": "b", "b": "a"}
		var callers sync.WaitGroup
		for _, lease := range []*scheduler.Lease[string]{first, second} {
			callers.Go(func() {
				turn, err := s.Wait(lease.Context(t.Context()), other[lease.Host()])
				if assert.NoError(t, err) {
					turn.Done(scheduler.Outcome{})
				}
				lease.Done(scheduler.Outcome{})
			})
		}
		callers.Wait()
		require.Zero(t, s.Stats().Lost)
	})
}

// TestWhatRemainsOfALease: a task without a turn is in flight, can be queued again when its host is
// long forgotten otherwise, and is lost like any other one.
func TestWhatRemainsOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 100 * time.Hour
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Second, LeaseTimeout: timeout})
		add(t, s, jobs(here, "a1", "b1")...)
		lost, kept := next(t, s), (*scheduler.Lease[string])(nil)
		turn, err := s.Wait(lost.Context(t.Context()), "b")
		require.NoError(t, err)
		turn.Done(scheduler.Outcome{})
		time.Sleep(timeout / 2)
		kept = next(t, s)
		turn, err = s.Wait(kept.Context(t.Context()), "c")
		require.NoError(t, err)
		turn.Done(scheduler.Outcome{})
		time.Sleep(timeout / 2)
		for i := range 100 { // each call forgets a few hosts
			turn, err := s.Wait(t.Context(), string(rune('A'+i)))
			require.NoError(t, err)
			turn.Done(scheduler.Outcome{})
		}
		require.EqualValues(t, 1, s.Stats().Lost)
		lost.Requeue(scheduler.Outcome{}, time.Time{})
		kept.Requeue(scheduler.Outcome{}, time.Time{})
		require.Equal(t, 1, s.Stats().Queued)
		require.Equal(t, "b1", next(t, s).Item())
	})
}

// TestAnyHolderMayWait has goroutines that make requests to random hosts on the way to a task's.
func TestAnyHolderMayWait(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const delay = time.Second
			rnd := rand.New(rand.NewPCG(seed, 1))
			s := scheduler.New[string](scheduler.Options{HostDelay: delay, AddrDelay: delay, GroupDelay: delay})
			hosts := []string{"a", "b", "c", "d", "e"}
			for i, host := range hosts {
				var h scheduler.Host
				if i < 3 {
					h.Addr = here
				}
				if i%2 == 0 {
					h.Group = "g"
				}
				s.SetHost(host, h)
				for range 4 {
					require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
				}
			}
			var mu sync.Mutex
			out, last := map[string]int{}, map[string]time.Time{}
			visit := func(ctx context.Context, host string, took time.Duration) {
				turn, err := s.Wait(ctx, host)
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				out[host]++
				assert.Equal(t, 1, out[host])
				assert.GreaterOrEqual(t, time.Since(last[host]), delay)
				mu.Unlock()
				time.Sleep(took)
				mu.Lock()
				out[host]--
				last[host] = time.Now()
				mu.Unlock()
				turn.Done(scheduler.Outcome{Start: time.Now()})
			}
			var workers sync.WaitGroup
			for range 6 {
				var more []string
				for range 100 {
					more = append(more, hosts[rnd.IntN(len(hosts))])
				}
				workers.Go(func() {
					for lease, err := range s.Leases(t.Context()) {
						if !assert.NoError(t, err) {
							return
						}
						ctx := lease.Context(t.Context())
						for range len(more) % 3 {
							visit(ctx, more[0], time.Second/2)
							more = more[1:]
						}
						visit(ctx, lease.Host(), time.Second/2)
						more = more[1:]
						lease.Done(scheduler.Outcome{})
					}
				})
			}
			workers.Wait()
			require.Zero(t, s.Stats().Lost)
			require.Zero(t, s.Stats().Queued)
		})
	}
}

// TestHolderOfTwoLeases: a context carries all leases under which it was made.
func TestHolderOfTwoLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
		add(t, s, jobs(anywhere, "a1", "b1")...)
		first, second := next(t, s), next(t, s)
		start := time.Now()
		turn, err := s.Wait(second.Context(first.Context(t.Context())), first.Host())
		require.NoError(t, err)
		require.Zero(t, time.Since(start))
		require.False(t, first.Held() || second.Held())
		turn.Done(scheduler.Outcome{})
	})
}

// TestHoldEndsWhenTheAddressIsPaused pauses an address in all ways while the group of one of its
// hosts is held for that. The other hosts of the group have nothing to do with the address.
func TestHoldEndsWhenTheAddressIsPaused(t *testing.T) {
	tomorrow := start.Add(24 * time.Hour)
	for how, pause := range map[string]func(s *scheduler.Scheduler[string], p *scheduler.Lease[string]){
		"Retry-After": func(_ *scheduler.Scheduler[string], p *scheduler.Lease[string]) {
			p.Done(scheduler.Outcome{Status: 429, RetryAfter: tomorrow})
		},
		"Restore": func(s *scheduler.Scheduler[string], p *scheduler.Lease[string]) {
			require.NoError(t, s.Restore(scheduler.Entry{Addr: here, Failures: 6, RetryAfter: tomorrow}, start))
			p.Done(scheduler.Outcome{Skipped: true})
		},
		"restart": func(s *scheduler.Scheduler[string], p *scheduler.Lease[string]) {
			p.Done(scheduler.Outcome{Skipped: true})
			require.NoError(t, s.Restore(scheduler.Entry{Addr: here, Slow: time.Hour}, start))
		},
		"Arrived": func(_ *scheduler.Scheduler[string], p *scheduler.Lease[string]) {
			p.Arrived(tomorrow)
			p.Done(scheduler.Outcome{})
		},
		"Start": func(_ *scheduler.Scheduler[string], p *scheduler.Lease[string]) {
			p.Done(scheduler.Outcome{Start: tomorrow})
		},
	} {
		t.Run(how, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{
				HostDelay: -1, AddrDelay: time.Second, GroupDelay: -1, LeaseTimeout: -1, MaxRetryAfter: -1,
			})
			s.SetHost("x", scheduler.Host{Addr: here, Group: "g"})
			add(t, s, grouped("g", jobs(anywhere, "q"))...)
			q, _ := s.TryNext(start) // the group is leased
			add(t, s, job{Task: scheduler.Task[string]{Host: "x"}})
			lease, _ := s.TryNext(start) // x moves to its group
			require.Nil(t, lease)
			add(t, s, jobs(here, "p")...)
			p, _ := s.TryNext(start) // the address is leased
			q.Done(scheduler.Outcome{})
			add(t, s, grouped("g", jobs(anywhere, "r"))...)
			lease, _ = s.TryNext(start)
			require.Nil(t, lease, "the group is held for x")
			pause(s, p)
			lease, _ = s.TryNext(start.Add(time.Millisecond))
			require.NotNil(t, lease)
			require.Equal(t, "r", lease.Item())
		})
	}
}

// TestWaitDoesNotCountTheLease: the outcome of a request whose turn is given back is not known, so
// it neither adds to the failures of its host nor halves them.
func TestWaitDoesNotCountTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		for range 4 {
			wait(t, s, "a").Done(scheduler.Outcome{Failed: true})
		}
		time.Sleep(time.Hour)
		add(t, s, jobs(anywhere, "a1")...)
		lease := next(t, s)
		lease.Arrived(time.Now())
		turn, err := s.Wait(lease.Context(t.Context()), "b")
		require.NoError(t, err)
		turn.Done(scheduler.Outcome{})
		require.Equal(t, 4, s.Explain("a").Failures)
		require.Equal(t, time.Now().Add(4*time.Minute), until(t, s, "a"), "it was visited all the same")
	})
}
