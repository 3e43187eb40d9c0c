package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// A game makes random calls on the clock of the computer, by several goroutines: those that TestModel
// cannot make, and those that come long after the last event.
type game struct {
	t   *testing.T
	s   *scheduler.Scheduler[int]
	rng *rand.Rand

	mu     sync.Mutex
	leases []*scheduler.Lease[int]
	added  int
	calls  int // of Next and Wait
}

// TestAtRandom checks after each call that the Scheduler is consistent, and at the end that nothing
// waits forever. Flag rounds makes it longer.
func TestAtRandom(t *testing.T) {
	for seed := range uint64(*rounds * 20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			pick := func(of ...int) int { return of[rng.IntN(len(of))] }
			wait := func(of ...time.Duration) time.Duration { return of[rng.IntN(len(of))] }
			g := &game{t: t, rng: rng, s: scheduler.New[int](scheduler.Options{
				HostDelay: wait(-1, 2*time.Second), AddrDelay: wait(-1, time.Second),
				GroupDelay: wait(-1, time.Second), LeaseTimeout: wait(-1, 10*time.Second, time.Minute),
				MaxPerHost: pick(0, 2), MaxPerAddr: pick(0, 3), MaxPerGroup: pick(0, 2), MaxHostQueue: pick(0, 3),
				MaxIdleHosts: pick(0, 2),
			})}
			for range 150 {
				g.play()
				g.verify(seed)
				switch rng.IntN(20) {
				case 0, 1, 2, 3:
					time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
				case 4:
					time.Sleep([]time.Duration{time.Minute, time.Hour, 25 * time.Hour}[rng.IntN(3)])
				}
			}
			g.drain(seed)
		})
	}
}

func (g *game) verify(seed uint64) {
	synctest.Wait()
	require.NoError(g.t, g.s.Verify(), "seed %d", seed)
	stats := g.s.Stats()
	require.Equal(g.t, stats.Hosts, stats.Idle+stats.Waiting+stats.Ready+stats.Leased, "seed %d", seed)
}

func (g *game) host() string { return fmt.Sprint("host", g.rng.IntN(7)) }

// lease calls Next or Wait in the background.
func (g *game) lease(ctx context.Context, call func(context.Context) (*scheduler.Lease[int], error)) {
	g.calls++
	timeout := time.Duration(1+g.rng.IntN(100)) * time.Second
	go func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		lease, err := call(ctx)
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.calls--; err == nil {
			g.leases = append(g.leases, lease)
		}
	}()
}

// take removes a random lease from those that were given.
func (g *game) take() *scheduler.Lease[int] {
	if len(g.leases) == 0 {
		return nil
	}
	i := g.rng.IntN(len(g.leases))
	lease := g.leases[i]
	g.leases = slices.Delete(g.leases, i, i+1)
	return lease
}

func (g *game) play() {
	g.mu.Lock()
	defer g.mu.Unlock()
	soon := time.Now().Add(time.Duration(g.rng.IntN(100)) * time.Second)
	host := g.host()
	wait := func(ctx context.Context) (*scheduler.Lease[int], error) { return g.s.Wait(ctx, host) }
	switch op := g.rng.IntN(18); op {
	case 0, 1, 2, 3:
		g.added++
		task := scheduler.Task[int]{Host: host, Priority: uint8(op), Item: g.added}
		if op == 3 {
			task.NotBefore = soon
		}
		_ = g.s.Add(task) // may be full
	case 4, 5, 6:
		g.lease(g.t.Context(), g.s.Next)
	case 7:
		g.lease(g.t.Context(), wait)
	case 8, 9, 10, 11, 12, 13:
		if lease := g.take(); lease != nil {
			g.use(lease, op, soon, wait)
		}
	case 14, 15:
		said := scheduler.Host{Addr: ip(g.rng.IntN(3)), Group: []string{"", "g", "h"}[g.rng.IntN(3)]}
		said.CrawlDelay = time.Duration(g.rng.IntN(4)-1) * 2 * time.Second
		require.NoError(g.t, g.s.SetHost(host, said))
	case 16:
		g.s.Withdraw(host)
	case 17:
		entry := scheduler.Entry{Addr: ip(g.rng.IntN(3)), Failures: g.rng.IntN(3), RetryAfter: soon}
		require.NoError(g.t, g.s.Restore(entry, time.Now()))
	}
}

// use makes a call with a lease.
func (g *game) use(
	lease *scheduler.Lease[int], op int, soon time.Time,
	wait func(context.Context) (*scheduler.Lease[int], error),
) {
	switch op {
	case 8:
		lease.Done(scheduler.Outcome{Status: 429, RetryAfter: soon})
	case 9:
		lease.Requeue(scheduler.Outcome{Failed: true}, soon)
	case 10:
		lease.Done(scheduler.Outcome{Start: time.Now(), Took: time.Second})
	case 11:
		if ok := lease.Reach(ip(g.rng.IntN(3))); ok {
			require.True(g.t, lease.Held())
		}
		g.leases = append(g.leases, lease)
	case 12:
		lease.Arrived(soon)
		g.leases = append(g.leases, lease)
	case 13:
		g.leases = append(g.leases, lease)
		g.lease(lease.Context(g.t.Context()), wait)
	}
}

// drain ends all leases and leases all tasks.
func (g *game) drain(seed uint64) {
	for range 10_000 {
		g.mu.Lock()
		for lease := g.take(); lease != nil; lease = g.take() {
			lease.Done(scheduler.Outcome{})
		}
		stats := g.s.Stats()
		over := stats.Queued+g.calls == 0 && len(g.leases) == 0
		if g.calls == 0 && !over {
			g.lease(g.t.Context(), g.s.Next)
		}
		g.mu.Unlock()
		g.verify(seed)
		if over {
			return
		}
		time.Sleep(time.Minute)
	}
	require.Fail(g.t, "tasks are left", "seed %d: %+v", seed, g.s.Stats())
}
