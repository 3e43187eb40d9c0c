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
	require.Len(t, s.tasks.chunks, 1)
	require.Len(t, s.book.hosts.chunks, 1)
	require.Len(t, s.book.addrs.chunks, 1)
	require.Len(t, s.book.ready.buf, 16)
}

func TestLeaseIsTheOnlyAllocation(t *testing.T) {
	s := New[int](Options{HostDelay: time.Nanosecond})
	s.SetDelay("a", 2*time.Nanosecond) // so that the host is not forgotten
	now := time.Now()
	addr := netip.AddrFrom4([4]byte{10})
	allocs := testing.AllocsPerRun(100, func() {
		require.NoError(t, s.Add(Task[int]{Host: "a", Addr: addr}))
		now = now.Add(time.Second)
		lease, _ := s.TryNext(now)
		lease.Done(Outcome{})
	})
	require.EqualValues(t, 1, allocs)
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
