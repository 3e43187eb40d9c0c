package exact

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomSightings returns sightings of few URLs, or of many, in the order of their places.
func randomSightings(random *rand.Rand, n int, urls uint64, mask uint64) []sighting {
	all := make([]sighting, n)
	place := int64(0)
	for i := range all {
		place += 1 + random.Int64N(100)
		url := random.Uint64N(urls) * 0x9e3779b97f4a7c15 & mask
		all[i] = newSighting(fingerprint(url), place)
	}
	return all
}

// TestSightingsAreSorted compares with the sort of the standard library. Fingerprints are
// distributed like hashes, crowded at either end, or all the same.
func TestSightingsAreSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, n := range []int{0, 1, 2, smallBucket, smallBucket + 1, 300, 5000} {
		for _, urls := range []uint64{1, 2, 100, 1 << 40} {
			for _, mask := range []uint64{^uint64(0), 0xfff, 0xff << 56, 0x8000_0000_0000_0001} {
				came := randomSightings(random, n, urls, mask)
				want := slices.Clone(came)
				slices.SortStableFunc(want, func(x, y sighting) int {
					return cmp.Compare(x.print(), y.print())
				})
				want = slices.CompactFunc(want, func(x, y sighting) bool {
					return x.print() == y.print()
				})
				got := slices.Clone(came)
				sortWords(got, byPrint, 64-digitBits)
				got = slices.CompactFunc(got, sighting.sameURL)
				require.Equal(t, want, got, "%d of %d URLs, mask %x", n, urls, mask)

				slices.SortFunc(want, func(x, y sighting) int { return cmp.Compare(x.place(), y.place()) })
				last := uint64(n)*100<<1 | 1
				sortWords(got, byPlace, max(bits.Len64(last)-digitBits, 0))
				require.Equal(t, want, got, "%d of %d URLs, mask %x", n, urls, mask)
			}
		}
	}
}

func TestSightingKeepsItsParts(t *testing.T) {
	s := newSighting(12, 1<<61)
	require.False(t, s.isNew())
	s.setNew()
	require.True(t, s.isNew())
	require.EqualValues(t, int64(1)<<61, s.place())
	s.clearNew()
	require.False(t, s.isNew())
	require.EqualValues(t, 12, s.print())
	require.EqualValues(t, int64(1)<<61, s.place())
}
