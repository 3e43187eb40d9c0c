package scheduler

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMemoryIsThatOfTheMostHeldAtOnce lets many hosts, addresses and tasks come and go, of which
// two are held at any time.
func TestMemoryIsThatOfTheMostHeldAtOnce(t *testing.T) {
	s := New[string](Options{})
	now := time.Now()
	for i := range uint16(10 * chunkLen) {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		require.NoError(t, s.Add(Task[string]{Host: fmt.Sprint(i), Addr: addr}))
		lease, _ := s.TryNext(now)
		require.NotNil(t, lease)
		lease.Done(Outcome{})
		now = now.Add(DefaultHostDelay)
	}
	require.Len(t, s.book.tasks.chunks, 1)
	require.Len(t, s.items.chunks, 1)
	require.Len(t, s.book.places.chunks, 1)
	require.Len(t, s.book.timers.chunks, 1)
	require.Len(t, s.book.visits.chunks, 1)
	require.LessOrEqual(t, len(s.book.names.texts), 2)
	require.Len(t, s.book.rings.of[0].buf, 16)
}

func TestNothingIsAllocated(t *testing.T) {
	v4, v6 := netip.AddrFrom4([4]byte{10}), netip.MustParseAddr("2001:db8::1")
	for name, task := range map[string]Task[int]{
		"host":         {Host: "a"},
		"IPv4 address": {Host: "a", Addr: v4},
		"IPv6 address": {Host: "a", Addr: v6},
		"group":        {Host: "a", Addr: v4, Group: "g"},
		"back-off":     {Host: "b", Addr: v4},
	} {
		s := New[int](Options{})
		now := time.Now()
		o := Outcome{Failed: name == "back-off"}
		allocs := testing.AllocsPerRun(2000, func() {
			require.NoError(t, s.Add(task))
			now = now.Add(4 * time.Second)
			if lease, _ := s.TryNext(now); lease != nil {
				lease.Done(o)
			}
		})
		require.Zero(t, allocs, name)
	}
}

func TestLaterStopsAtTheEndOfTime(t *testing.T) {
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

func TestSaturatedStopsAtBothEndsOfTime(t *testing.T) {
	for _, tt := range []struct{ t, now, want int64 }{
		{5, 3, 2},
		{3, 5, -2},
		{never, 5, never},
		{never - 1, -5, never},
		{0, longAgo, never},
		{longAgo, 1, longAgo},
		{-1, longAgo, never},
	} {
		require.Equal(t, tt.want, saturated(tt.t, tt.now), "saturated(%d, %d)", tt.t, tt.now)
		if tt.want > longAgo && tt.want < never {
			require.Equal(t, tt.t, sum(tt.now, tt.want))
		}
	}
}

func TestTimesStopsAtTheEndOfTime(t *testing.T) {
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
