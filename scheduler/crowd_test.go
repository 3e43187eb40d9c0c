package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A witness records the visits of many concurrent workers.
type witness struct {
	t    *testing.T
	mu   sync.Mutex
	last map[any]time.Time // visit of a host or an address
	busy map[any]bool
	seen map[int]bool
}

func newWitness(t *testing.T) *witness {
	return &witness{t: t,
		last: make(map[any]time.Time), busy: make(map[any]bool), seen: make(map[int]bool)}
}

// enter checks that the task is new, and that neither its host nor its address is being visited or
// was visited less than delay ago.
func (w *witness) enter(task scheduler.Task[int], addr netip.Addr, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, key := range []any{task.Host, addr} {
		if w.busy[key] {
			w.t.Errorf("%v has two leases at the same time", key)
		}
		if last, ok := w.last[key]; ok && now.Sub(last) < delay {
			w.t.Errorf("%v is visited again after %v", key, now.Sub(last))
		}
		w.busy[key], w.last[key] = true, now
	}
	if w.seen[task.Item] {
		w.t.Errorf("task %d is leased twice", task.Item)
	}
	w.seen[task.Item] = true
}

func (w *witness) leave(task scheduler.Task[int], addr netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, task.Host)
	delete(w.busy, addr)
}

// TestCrowdIsPolite has hosts that share addresses, visits of random length, and tasks that are
// added while others are in flight.
func TestCrowdIsPolite(t *testing.T) {
	const workers, seeds, found, delay = 16, 40, 400, 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s, w := scheduler.New[int](scheduler.Options{LatencyFactor: -1}), newWitness(t)
		var added atomic.Int64
		add := func() {
			n := int(added.Add(1))
			host := rand.IntN(40)
			s.SetHost(fmt.Sprint(host), scheduler.Host{Addr: ip(host % 9)})
			_ = s.Add(scheduler.Task[int]{Host: fmt.Sprint(host), Item: n})
		}
		for range seeds {
			add()
		}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					lease, err := s.Next(t.Context())
					if err != nil {
						assert.ErrorIs(t, err, scheduler.ErrDrained)
						return
					}
					at := s.Explain(lease.Host()).Addr
					w.enter(lease.Task(), at, delay)
					time.Sleep(time.Duration(rand.Int64N(int64(8 * time.Second))))
					if added.Load() < found {
						add()
						add()
					}
					w.leave(lease.Task(), at)
					lease.Done(scheduler.Outcome{})
				}
			})
		}
		wg.Wait()
		require.Len(t, w.seen, int(added.Load()), "every task was leased")
	})
}

// TestRace is for the race detector: it runs everything concurrently, without delays.
func TestRace(t *testing.T) {
	const workers, perProducer, producers = 8, 1000, 4
	s, w := scheduler.New[int](scheduler.Options{HostDelay: -1}), newWitness(t)
	var wg sync.WaitGroup
	for p := range producers {
		done := s.Producer()
		wg.Go(func() {
			defer done()
			for i := range perProducer {
				host := i % 23
				s.SetHost(fmt.Sprint(host), scheduler.Host{
					Addr: ip(host % 7), Group: fmt.Sprint("g", host%3), Delay: time.Duration(i%3 - 1),
				})
				assert.NoError(t, s.Add(scheduler.Task[int]{
					Host: fmt.Sprint(host), Item: p*perProducer + i,
				}))
			}
		})
	}
	for range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				lease, err := nextOrCancel(t.Context(), s, i%5 == 0)
				if errors.Is(err, context.Canceled) {
					continue
				}
				if err != nil {
					assert.ErrorIs(t, err, scheduler.ErrDrained)
					return
				}
				at := s.Explain(lease.Host()).Addr
				w.enter(lease.Task(), at, 0)
				s.Stats()
				w.leave(lease.Task(), at)
				if i%7 == 0 {
					one, err := s.Wait(t.Context(), fmt.Sprint("w", i%3))
					assert.NoError(t, err)
					one.Done(scheduler.Outcome{})
				}
				lease.Done(scheduler.Outcome{Start: time.Now()})
				lease.Done(scheduler.Outcome{Skipped: true})
			}
		})
	}
	wg.Wait()
	require.Len(t, w.seen, producers*perProducer, "every task was leased")
	require.Zero(t, s.Stats().Queued+s.Stats().Leased)
}

// nextOrCancel is Next, with a context that may end while it waits.
func nextOrCancel(
	ctx context.Context, s *scheduler.Scheduler[int], cancelled bool,
) (*scheduler.Lease[int], error) {
	if !cancelled {
		return s.Next(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	go cancel()
	return s.Next(ctx)
}
