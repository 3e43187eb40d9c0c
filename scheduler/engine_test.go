package scheduler

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMemoryIsReused adds and removes many hosts, addresses and tasks, with at most two of each at
// any time.
func TestMemoryIsReused(t *testing.T) {
	s := New[string](Options{MaxIdleHosts: 1})
	now := time.Now()
	for i := range uint16(10 * chunkLen) {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.SetHost(fmt.Sprint(i), Host{Addr: addr})
		require.NoError(t, s.Add(Task[string]{Host: fmt.Sprint(i), NotBefore: now}))
		lease, _ := s.TryNext(now)
		require.NotNil(t, lease)
		lease.Done(Outcome{})
		now = now.Add(DefaultHostDelay)
	}
	require.Len(t, s.engine.tasks.chunks, 1)
	require.Len(t, s.items.chunks, 1)
	require.Len(t, s.engine.hosts.chunks, 1)
	require.Len(t, s.engine.shares.chunks, 1)
	require.Len(t, s.engine.timers[0].chunks, 1)
	require.Len(t, s.engine.timers[1].chunks, 1)
	require.Len(t, s.engine.flights.chunks, 1)
	require.Len(t, s.engine.deferredTimers[0].chunks, 1)
	require.LessOrEqual(t, len(s.engine.names.texts), 2)
}

func TestAllocations(t *testing.T) {
	v4, v6 := netip.AddrFrom4([4]byte{10}), netip.MustParseAddr("2001:db8::1")
	for name, host := range map[string]Host{
		"host":         {},
		"IPv4 address": {Addr: v4},
		"IPv6 address": {Addr: v6},
		"group":        {Addr: v4, Group: "g"},
		"back-off":     {Addr: v4},
		"Crawl-delay":  {Addr: v4, Delay: time.Hour},
		"NotBefore":    {},
	} {
		s := New[int](Options{})
		now := time.Now()
		task, o := Task[int]{Host: "a"}, Outcome{Failed: name == "back-off"}
		allocs := testing.AllocsPerRun(2000, func() {
			s.SetHost("a", host)
			if name == "NotBefore" {
				task.NotBefore = now.Add(time.Second)
			}
			require.NoError(t, s.Add(task))
			now = now.Add(4 * time.Second)
			if lease, _ := s.TryNext(now); lease != nil {
				lease.Done(o)
			}
		})
		require.Zero(t, allocs, name)
	}
}

func TestLaterSaturates(t *testing.T) {
	for _, tt := range []struct{ t, d, want int64 }{
		{0, 0, 0},
		{5, never, never},
		{never, 1, never},
		{never - 1, 1, never},
		{-5, never, never - 5},
		{longAgo, never, -1},
	} {
		require.Equal(t, tt.want, later(tt.t, tt.d), "later(%d, %d)", tt.t, tt.d)
	}
}

func TestTimesSaturates(t *testing.T) {
	for _, tt := range []struct {
		factor float64
		d      time.Duration
		want   int64
	}{
		{5, time.Second, 5e9},
		{0.5, 3, 1},
		{0, time.Hour, 0},
		{5, -time.Hour, 0},
		{1, never, never},
		{2, never, never},
		{1e300, 1, never},
	} {
		require.Equal(t, tt.want, times(tt.factor, tt.d), "times(%g, %d)", tt.factor, tt.d)
	}
}
