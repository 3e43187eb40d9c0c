package stepped

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var steppedStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ip(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }

// release waits for the next list and returns it with the seconds since the start.
func release(t *testing.T, s *Scheduler[string], now *time.Time) string {
	t.Helper()
	items, wait := s.Next(*now)
	if items == nil && wait != Forever {
		*now = now.Add(wait)
		items, wait = s.Next(*now)
	}
	require.Zero(t, wait)
	return fmt.Sprintf("%v %v", now.Sub(steppedStart), items)
}

// finish ends the visits of a whole list.
func finish(s *Scheduler[string], now time.Time) {
	for s.Stats().Out > 0 {
		s.Done(now)
	}
}

func TestSteppedPutsEachAddressIntoAListOnce(t *testing.T) {
	s, now := New[string](Options{}), steppedStart
	for _, item := range []string{"a1", "a2", "b1", "a3", "b2"} {
		require.True(t, s.Add(ip(item[0]), 0, item))
	}
	for _, want := range []string{"5s [a1 b1]", "10s [a2 b2]", "15s [a3]"} {
		require.Equal(t, want, release(t, s, &now))
		finish(s, now)
	}
	_, wait := s.Next(now)
	require.Equal(t, Forever, wait)
}

func TestSteppedWaitsForTheSlowestPage(t *testing.T) {
	s, now := New[string](Options{}), steppedStart
	for _, item := range []string{"a1", "b1", "a2"} {
		s.Add(ip(item[0]), 0, item)
	}
	require.Equal(t, "5s [a1 b1]", release(t, s, &now))
	s.Done(now.Add(time.Second))
	_, wait := s.Next(now.Add(time.Minute))
	require.Equal(t, Forever, wait, "b1 is still in flight")
	s.Done(now.Add(40 * time.Second))
	require.Equal(t, "50s [a2]", release(t, s, &now), "45 s and a step")
}

func TestSteppedObeysCrawlDelaysByEmptyLists(t *testing.T) {
	s, now := New[string](Options{}), steppedStart
	s.Add(ip(1), 12*time.Second, "a1")
	s.Add(ip(1), 12*time.Second, "a2")
	s.Add(ip(2), 0, "b1")
	require.Equal(t, "5s [a1 b1]", release(t, s, &now))
	finish(s, now)
	require.Equal(t, "20s [a2]", release(t, s, &now), "two lists are skipped, each with its wait")
	require.EqualValues(t, 4, s.Stats().Steps)
}

func TestSteppedDropsItemsWithoutAList(t *testing.T) {
	s := New[string](Options{Lists: 3})
	for i := range 5 {
		// The paper's lists are numbered from 0, and the one before the first counts as visited.
		require.Equal(t, i < 2, s.Add(ip(1), 0, "a"), i)
	}
	require.True(t, s.Add(ip(2), 0, "b"), "another address has lists of its own")
	require.True(t, s.Add(ip(3), time.Hour, "c"), "its first URL")
	require.False(t, s.Add(ip(3), time.Hour, "c"), "an hour is more than three lists")
	require.EqualValues(t, 4, s.Stats().Dropped)
}

func TestSteppedKeepsTheDistanceWhileItIsIdle(t *testing.T) {
	s, now := New[string](Options{}), steppedStart
	s.Add(ip(1), time.Minute, "a1")
	require.Equal(t, "5s [a1]", release(t, s, &now))
	finish(s, now)
	s.Add(ip(1), time.Minute, "a2")
	require.Equal(t, "1m5s [a2]", release(t, s, &now))
}

// TestSteppedLongestDelay has the shortest step, so that a delay has the most steps.
func TestSteppedLongestDelay(t *testing.T) {
	s, now := New[string](Options{Step: 1}), steppedStart
	for range 3 {
		require.True(t, s.Add(ip(1), 0, "a"))
		release(t, s, &now)
		finish(s, now)
	}
	require.False(t, s.Add(ip(2), math.MaxInt64, "b"), "no list is that far from the current one")
	require.True(t, s.Add(ip(3), 0, "c"))
	require.True(t, s.Add(ip(3), math.MaxInt64, "c"))
	require.False(t, s.Add(ip(3), 0, "c"), "nor from that of its last URL")
}

// TestSteppedClockJumps: with the shortest step, a clock that jumps ahead passes the most lists.
func TestSteppedClockJumps(t *testing.T) {
	s, now := New[string](Options{Step: 1}), steppedStart
	for range 5 {
		now = now.AddDate(250, 0, 0)
		s.Next(now)
	}
	require.True(t, s.Add(ip(1), 0, "a"))
}

// visitAll visits what is queued, and calls Next once more, as the loop of the package's page does.
func visitAll(s *Scheduler[string], now *time.Time) {
	for {
		items, wait := s.Next(*now)
		if wait == Forever {
			return
		}
		*now = now.Add(wait)
		for range items {
			s.Done(*now)
		}
	}
}

func TestSteppedDroppedItemsChangeNothing(t *testing.T) {
	s, now := New[string](Options{}), steppedStart
	s.Add(ip(2), 0, "so that the counter of the next one is behind")
	visitAll(s, &now)
	require.False(t, s.Add(ip(1), 2*time.Hour, "dropped"))
	require.True(t, s.Add(ip(1), 0, "a"))
	require.True(t, s.Add(netip.AddrFrom4([4]byte{192, 1, 2, 1}), 0, "the same counter"))
}

func TestSteppedAddressOpensWhenItsDelayIsOver(t *testing.T) {
	for _, delay := range []time.Duration{2 * time.Hour, 24 * time.Hour, 1e6 * time.Hour} {
		s, now := New[string](Options{}), steppedStart
		require.True(t, s.Add(ip(1), delay, "a1"))
		visitAll(s, &now)
		began := now
		require.False(t, s.Add(ip(1), 0, "too early"))
		now = now.Add(min(delay, 24*time.Hour) - time.Hour)
		visitAll(s, &now)
		require.True(t, s.Add(ip(1), 0, "a2"), delay)
		visitAll(s, &now)
		require.GreaterOrEqual(t, now.Sub(began), min(delay, 24*time.Hour))
		require.Less(t, now.Sub(began), min(delay, 24*time.Hour)+2*DefaultStep)
	}
}

func TestSteppedMisuse(t *testing.T) {
	s := New[string](Options{Lists: -1, Counters: -1, Step: -1})
	s.Done(steppedStart)
	require.True(t, s.Add(netip.Addr{}, -time.Hour, "no address, negative delay"))
	require.True(t, s.Add(netip.MustParseAddr("2001:db8::1"), 0, "version 6"))
	s.Done(steppedStart)
	require.Equal(t, Stats{Queued: 2}, s.Stats())
	require.Len(t, s.lists, DefaultLists)
	require.Len(t, New[string](Options{Lists: 1}).lists, 2)
}

// TestSteppedLaws runs random crawls and checks what the paper promises: no address is visited
// before the delay since the end of its last visit has passed, and all items that are not dropped
// are visited.
func TestSteppedLaws(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := New[byte](Options{Lists: 2 + r.IntN(40), Counters: 1 + r.IntN(100)})
		now := steppedStart
		ended, delays := map[byte]time.Time{}, map[byte]time.Duration{}
		for a := range byte(20) {
			delays[a] = time.Duration(r.IntN(30)) * time.Second
		}
		added, visited := 0, 0
		for added < 500 || s.Stats().Queued > 0 {
			for added < 500 && r.IntN(3) > 0 {
				added++
				a := byte(r.IntN(20))
				s.Add(ip(a), delays[a], a)
			}
			items, wait := s.Next(now)
			if wait > 0 && wait != Forever {
				now = now.Add(wait)
			}
			met := map[byte]bool{}
			for _, a := range items {
				require.False(t, met[a], "seed %d: address %d twice in a list", seed, a)
				met[a] = true
				if last, ok := ended[a]; ok {
					require.GreaterOrEqual(t, now.Sub(last), max(DefaultStep, delays[a]), "seed %d", seed)
				}
				visited++
			}
			for _, a := range items {
				now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
				ended[a] = now
				s.Done(now)
			}
		}
		require.EqualValues(t, 500, int64(visited)+s.Stats().Dropped, "seed %d", seed)
	}
}
