package linklist

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSieveIsThatOfAMap compares with a map, for lists of all sizes and ids that fall together.
func TestSieveIsThatOfAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	var s sieve
	for round := range 400 {
		n := 1 + r.IntN(1<<r.IntN(12))
		s.start(n)
		seen := map[uint32]bool{}
		for range n {
			id := r.Uint32() >> r.IntN(32)
			switch r.IntN(3) {
			case 0:
				id <<= 20 // many of them have the same hash
			case 1:
				id = r.Uint32N(uint32(n))
			}
			require.Equal(t, !seen[id], s.add(id), "round %d, id %d of %d", round, id, n)
			seen[id] = true
		}
	}
}

func TestSieveForgetsWhatWasBefore(t *testing.T) {
	var s sieve
	for range 5 {
		s.start(3)
		require.True(t, s.add(0))
		require.True(t, s.add(7))
		require.False(t, s.add(7))
	}
	// Rounds are numbered in 32 bits: after the last comes the first, and slots from then.
	s.round = 1<<64 - 1<<32
	s.add(9)
	s.start(3)
	require.True(t, s.add(9), "another round of the same number")
	require.Equal(t, uint64(1)<<32, s.round)
}

func TestSieveStaysSmall(t *testing.T) {
	var s sieve
	s.start(9)
	require.Len(t, s.slots, 64)
	s.start(16)
	require.Len(t, s.slots, 64, "a quarter of it")
	s.start(1000)
	require.Len(t, s.slots, 2048, "long lists may take half")
	s.start(5)
	require.Len(t, s.slots, 2048, "what was made is kept")
	require.True(t, s.add(1<<32-1))
	require.False(t, s.add(1<<32-1))
}

// TestChosenIdsDoNotPileUp has a page with links to ids that a hash by the golden ratio alone would put side by side.
func TestChosenIdsDoNotPileUp(t *testing.T) {
	const n = 10_000
	var s sieve
	s.start(n)
	for id, left := uint32(0), n; left > 0; id++ {
		if id*0x9e3779b1 < 1<<32/20 {
			require.True(t, s.add(id))
			left--
		}
	}
	longest, run := 0, 0
	for _, slot := range s.slots {
		if run++; slot == 0 {
			run = 0
		}
		longest = max(longest, run)
	}
	require.Less(t, longest, 500, "slots in use in a row")
}
