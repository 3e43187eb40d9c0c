package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// TestWaitAndNextAtRandom has callers of Wait, some of which give up, beside a caller of Next. Each
// task is leased once, no host or address is visited twice at a time, and nobody waits forever: nor
// does a single goroutine that calls Wait for another host during each visit.
func TestWaitAndNextAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			m := newMixed(seed)
			var all sync.WaitGroup
			for caller := range uint64(3) {
				if m.alone {
					break
				}
				all.Go(func() { m.wait(t.Context(), rand.New(rand.NewPCG(seed, caller+1))) })
			}
			all.Go(func() { m.lease(t.Context(), rand.New(rand.NewPCG(seed, 4)), &all) })
			all.Wait()
			require.Empty(t, m.faults, "seed %d", seed)
			stats := m.s.Stats()
			require.Zero(t, stats.Queued+stats.Out, "seed %d", seed)
			require.Equal(t, stats.Hosts, stats.Idle, "seed %d", seed)
			for item, times := range m.leased[1:] {
				require.Equal(t, 1, times, "seed %d: item %d", seed, item+1)
			}
		})
	}
}

// A mixed is a Scheduler whose hosts get requests from callers of Wait as well as tasks.
type mixed struct {
	s     *scheduler.Scheduler[int]
	hosts int
	alone bool // a single goroutine makes all visits
	known map[string]scheduler.Host

	mu     sync.Mutex
	busy   map[any]bool
	leased [101]int // by item; 0 has no task
	faults []string
}

func newMixed(seed uint64) *mixed {
	random := rand.New(rand.NewPCG(seed, 0))
	m := &mixed{hosts: 2 + random.IntN(8), alone: seed%2 == 0, known: map[string]scheduler.Host{}, busy: map[any]bool{}}
	m.s = scheduler.New[int](scheduler.Options{
		HostDelay: time.Second, AddrDelay: 2 * time.Second, MaxPerGroup: 1 + random.IntN(2),
		LeaseTimeout: -1,
		Backoff:      2 * time.Second, MaxBackoff: 20 * time.Second,
	})
	for i := range m.hosts {
		host := scheduler.Host{Addr: ip(random.IntN(3)), Group: fmt.Sprint(random.IntN(3))}
		m.known[fmt.Sprint(i)] = host
		m.s.SetHost(fmt.Sprint(i), host)
	}
	for item := range m.leased[1:] {
		_ = m.s.Add(scheduler.Task[int]{Host: fmt.Sprint(random.IntN(m.hosts)), Item: item + 1})
	}
	return m
}

func (m *mixed) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// begin notes the begin of a visit.
func (m *mixed) begin(lease *scheduler.Lease[int], task bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range []any{lease.Host(), m.known[lease.Host()].Addr} {
		if m.busy[key] {
			m.fault("%v is visited twice at a time", key)
		}
		m.busy[key] = true
	}
	if task != (lease.Item() != 0) {
		m.fault("item %d of %s went to the wrong caller", lease.Item(), lease.Host())
	}
	m.leased[lease.Item()]++
}

// visit ends a visit after some time.
func (m *mixed) visit(lease *scheduler.Lease[int], took time.Duration, o scheduler.Outcome) {
	time.Sleep(took)
	m.mu.Lock()
	delete(m.busy, lease.Host())
	delete(m.busy, m.known[lease.Host()].Addr)
	m.mu.Unlock()
	lease.Done(o)
}

func randomly(random *rand.Rand) (time.Duration, scheduler.Outcome) {
	return time.Duration(random.IntN(3000)) * time.Millisecond, scheduler.Outcome{
		Failed: random.IntN(5) == 0, Skipped: random.IntN(8) == 0,
		RetryAfter: time.Now().Add(time.Duration(random.IntN(20)-10) * time.Second),
	}
}

func (m *mixed) wait(ctx context.Context, random *rand.Rand) {
	for range 25 {
		time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
		ctx, cancel := context.WithCancel(ctx)
		if random.IntN(3) == 0 {
			time.AfterFunc(time.Duration(random.IntN(5000))*time.Millisecond, cancel)
		}
		if lease, err := m.s.Wait(ctx, fmt.Sprint(random.IntN(m.hosts))); err == nil {
			m.begin(lease, false)
			took, o := randomly(random)
			m.visit(lease, took, o)
		}
		cancel()
	}
}

func (m *mixed) lease(ctx context.Context, random *rand.Rand, all *sync.WaitGroup) {
	for lease, err := range m.s.Leases(ctx) {
		if err != nil {
			m.fault("%v", err)
			return
		}
		m.begin(lease, true)
		took, o := randomly(random)
		if !m.alone {
			all.Go(func() { m.visit(lease, took, o) })
			continue
		}
		here, other := m.known[lease.Host()], fmt.Sprint(random.IntN(m.hosts))
		if there := m.known[other]; there.Addr != here.Addr && there.Group != here.Group {
			nested, err := m.s.Wait(ctx, other)
			if err != nil {
				m.fault("%v", err)
				return
			}
			m.begin(nested, false)
			m.visit(nested, took, o)
		}
		m.visit(lease, took, o)
	}
}
