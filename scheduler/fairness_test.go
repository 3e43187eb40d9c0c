package scheduler

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func nthAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// crossing is a Scheduler whose hosts have an address, a group, or both, and never run out of
// tasks.
type crossing struct {
	s     *Scheduler[struct{}]
	now   time.Time
	given map[string]int
	out   []*Lease[struct{}]
}

func newCrossing(o Options) *crossing {
	return &crossing{New[struct{}](o), time.Now(), map[string]int{}, nil}
}

func (c *crossing) add(host string, h Host) {
	c.s.SetHost(host, h)
	_ = c.s.Add(Task[struct{}]{Host: host})
}

// run leases tasks for a period. Each visit takes as long as visit returns.
func (c *crossing) run(d time.Duration, visit func() time.Duration) {
	until := map[*Lease[struct{}]]time.Time{}
	for end := c.now.Add(d); c.now.Before(end); {
		lease, wait := c.s.TryNext(c.now)
		if lease != nil {
			c.given[lease.Host()]++
			_ = c.s.Add(lease.Task())
			until[lease] = c.now.Add(visit())
			continue
		}
		next := c.now.Add(min(wait, d))
		for _, at := range until {
			if at.Before(next) {
				next = at
			}
		}
		c.now = next
		for lease, at := range until {
			if !at.After(c.now) {
				delete(until, lease)
				lease.Done(Outcome{Start: at})
			}
		}
	}
}

// TestNoStarvation has a victim that shares its address with some hosts and its group with others,
// so that both are rarely free at the same time.
func TestNoStarvation(t *testing.T) {
	for _, tt := range []struct{ atAddr, inGroup int }{{1, 1}, {2, 2}, {1, 50}, {50, 1}, {20, 20}} {
		for _, visit := range []time.Duration{0, 300 * time.Millisecond} {
			t.Run(fmt.Sprintf("%+v visit=%v", tt, visit), func(t *testing.T) {
				c := newCrossing(Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
				c.add("victim", Host{Addr: nthAddr(0), Group: "g"})
				for i := range tt.atAddr {
					c.add(fmt.Sprint("a", i), Host{Addr: nthAddr(0)})
				}
				for i := range tt.inGroup {
					c.add(fmt.Sprint("g", i), Host{Addr: nthAddr(1 + i), Group: "g"})
				}
				const hours = 6
				c.run(hours*time.Hour, func() time.Duration { return visit })
				// One turn of each list, and at most one more of the address: see serve.
				turns := float64(max(tt.atAddr, tt.inGroup)+2) * 2
				require.GreaterOrEqual(t, float64(c.given["victim"]), hours*3600/turns/1.3)
				for i := range tt.atAddr {
					require.GreaterOrEqual(t, c.given[fmt.Sprint("a", i)], c.given["victim"]/2)
				}
			})
		}
	}
}

// TestBigGroupDoesNotSlowNeighbors: a host in a group of a thousand does not delay the other hosts
// of its address. It would if they waited for its turn in the group.
func TestBigGroupDoesNotSlowNeighbors(t *testing.T) {
	c := newCrossing(Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
	c.add("both", Host{Addr: nthAddr(0), Group: "g"})
	c.add("neighbor", Host{Addr: nthAddr(0)})
	for i := range 1000 {
		c.add(fmt.Sprint("g", i), Host{Addr: nthAddr(1 + i), Group: "g"})
	}
	c.run(time.Hour, func() time.Duration { return 0 })
	require.Greater(t, c.given["neighbor"], 3500)
	require.Greater(t, c.given["both"], 2)
}

// TestPausedAddressHoldsNoGroup has a host whose address is paused for a day.
func TestPausedAddressHoldsNoGroup(t *testing.T) {
	c := newCrossing(Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
	c.add("ill", Host{Addr: nthAddr(0), Group: "g"})
	c.add("well", Host{Addr: nthAddr(1), Group: "g"})
	c.add("neighbor", Host{Addr: nthAddr(0)})
	lease, _ := c.s.TryNext(c.now)
	require.Equal(t, "ill", lease.Host())
	_ = c.s.Add(lease.Task())
	c.run(3*time.Second, func() time.Duration { return 0 }) // the group is held for ill
	lease.Done(Outcome{Start: c.now, RetryAfter: c.now.Add(24 * time.Hour)})
	c.given = map[string]int{}
	c.run(time.Hour, func() time.Duration { return 0 })
	require.Zero(t, c.given["ill"])
	require.InDelta(t, 3600, c.given["well"], 2)
	c.run(24*time.Hour, func() time.Duration { return 0 })
	require.Greater(t, c.given["ill"], 1000)
}

// TestHostsChangeListsRarely checks the constant cost: a host changes waitlists at most twice per
// lease. Each host shares its address with some hosts and its group with others. Every address and
// every group also has hosts of its own, which keep it busy.
func TestHostsChangeListsRarely(t *testing.T) {
	for _, visit := range []time.Duration{0, 700 * time.Millisecond} {
		c := newCrossing(Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
		const side, rng = 60, 3
		for a := range side {
			for g := range side {
				c.add(fmt.Sprint("both", a, ".", g), Host{Addr: nthAddr(a), Group: fmt.Sprint(g)})
			}
			c.add(fmt.Sprint("addr", a), Host{Addr: nthAddr(a)})
			c.add(fmt.Sprint("group", a), Host{Group: fmt.Sprint(a)})
		}
		random := rand.New(rand.NewPCG(rng, 0))
		c.run(5*time.Minute, func() time.Duration {
			return time.Duration(random.Int64N(int64(visit) + 1))
		})
		given := int64(c.s.Stats().Given)
		require.Greater(t, given, int64(side*100))
		hosts := int64(side * (side + 2))
		require.LessOrEqual(t, c.s.engine.joins, 3*given+3*hosts)
	}
}
