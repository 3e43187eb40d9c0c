package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

// TestNextWakes has a Next that waits for a1 or for nothing, and an event after one second.
func TestNextWakes(t *testing.T) {
	for name, tt := range map[string]struct {
		queued []job
		happen func(t *testing.T, s *scheduler.Scheduler[string], out *scheduler.Lease[string])
		want   result
	}{
		"when a task is added": {
			nil,
			func(t *testing.T, s *scheduler.Scheduler[string], _ *scheduler.Lease[string]) {
				add(t, s, jobs(there, "b1")...)
			},
			result{item: "b1", after: time.Second},
		},
		"at the NotBefore of an added task": {
			jobs(here, "a1"),
			func(t *testing.T, s *scheduler.Scheduler[string], out *scheduler.Lease[string]) {
				add(t, s, notBefore(time.Now().Add(time.Millisecond), jobs(there, "b1"))...)
				out.Done(scheduler.Outcome{})
			},
			result{item: "b1", after: 1001 * time.Millisecond},
		},
		"when a lease of a host without a delay ends": {
			jobs(here, "a1"),
			func(_ *testing.T, _ *scheduler.Scheduler[string], out *scheduler.Lease[string]) {
				out.Done(scheduler.Outcome{Skipped: true})
			},
			result{item: "a1", after: time.Second},
		},
		"after the delay of a lease that ends": {
			jobs(here, "a1"),
			func(_ *testing.T, _ *scheduler.Scheduler[string], out *scheduler.Lease[string]) {
				out.Done(scheduler.Outcome{})
			},
			result{item: "a1", after: 5 * time.Second},
		},
		"when the last lease ends": {
			nil,
			func(_ *testing.T, _ *scheduler.Scheduler[string], out *scheduler.Lease[string]) {
				out.Done(scheduler.Outcome{})
			},
			result{err: scheduler.ErrDrained, after: time.Second},
		},
		"when a delay is canceled": {
			jobs(here, "a1"),
			func(_ *testing.T, s *scheduler.Scheduler[string], out *scheduler.Lease[string]) {
				setDelay(s, "a", time.Hour)
				out.Done(scheduler.Outcome{})
				time.Sleep(10 * time.Second)
				setDelay(s, "a", -1)
			},
			result{item: "a1", after: 11 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New[string](scheduler.Options{})
				add(t, s, jobs(here, "a0")...)
				add(t, s, tt.queued...)
				out := next(t, s)
				results := background(t.Context(), s)
				time.Sleep(time.Second)
				tt.happen(t, s, out)
				require.Equal(t, tt.want, <-results)
			})
		})
	}
}

func TestProducerHoldsOffDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		first, second := s.Producer(), s.Producer()
		one, other := background(t.Context(), s), background(t.Context(), s)
		time.Sleep(time.Minute)
		first()
		first()
		time.Sleep(time.Minute)
		require.Empty(t, one, "the second producer is not done")
		second()
		want := result{err: scheduler.ErrDrained, after: 2 * time.Minute}
		require.Equal(t, want, <-one)
		require.Equal(t, want, <-other)

		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, scheduler.ErrDrained)
	})
}

func TestSchedulerContinuesAfterDrained(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1})
	for range 3 {
		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, scheduler.ErrDrained)
		add(t, s, jobs(here, "a1")...)
		next(t, s).Done(scheduler.Outcome{})
	}
}

func TestContextEndsNext(t *testing.T) {
	for name, cancelled := range map[string]int{
		"the first one that waits": 0,
		"the second one":           1,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New[string](scheduler.Options{})
				add(t, s, jobs(here, "a0", "a1")...)
				next(t, s).Done(scheduler.Outcome{})

				var results [2]<-chan result
				var cancel [2]context.CancelFunc
				for i := range results {
					var ctx context.Context
					ctx, cancel[i] = context.WithCancel(t.Context())
					results[i] = background(ctx, s)
				}
				time.Sleep(time.Second)
				cancel[cancelled]()
				want := result{err: context.Canceled, after: time.Second}
				require.Equal(t, want, <-results[cancelled])
				// The other one still gets the lease in time.
				want = result{item: "a1", after: 5 * time.Second}
				require.Equal(t, want, <-results[1-cancelled])
				cancel[1-cancelled]()
			})
		})
	}
}

func TestNextWithEndedContext(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(here, "a1")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, s.Stats().Queued, "the task is still there")
}

func TestStatsOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, jobs(here, "a0", "a1")...)
		next(t, s).Done(scheduler.Outcome{}) // immediately
		next(t, s)                           // after 5 s, without Done
		one, other := background(t.Context(), s), background(t.Context(), s)

		// These 20 s do not count, as nothing is queued.
		time.Sleep(20 * time.Second)
		got := s.Stats()
		require.EqualValues(t, 1, got.Waits)
		require.Equal(t, 5*time.Second, got.Waited)

		// Two callers wait, for c1 and then for b1: that is one wait of 7 s.
		for i, item := range []string{"c1", "b1"} {
			after := time.Duration(8-i) * time.Second
			add(t, s, notBefore(time.Now().Add(after), jobs(anywhere, item))...)
			synctest.Wait()
		}
		require.Equal(t, "b1", (<-one).item)
		require.Equal(t, "c1", (<-other).item)
		got = s.Stats()
		require.EqualValues(t, 2, got.Waits, "the other caller waits for another second, without a break")
		require.Equal(t, 13*time.Second, got.Waited)
		require.EqualValues(t, 4, got.Given)
	})
}

func TestStatsOfCanceledWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, jobs(here, "a0", "a1")...)
		next(t, s).Done(scheduler.Outcome{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, (<-background(ctx, s)).err, context.DeadlineExceeded)

		time.Sleep(time.Second) // without a waiter
		next(t, s)
		got := s.Stats()
		require.EqualValues(t, 2, got.Waits)
		require.Equal(t, 4*time.Second, got.Waited, "3 s canceled, and the last 1 s of the delay")
	})
}
