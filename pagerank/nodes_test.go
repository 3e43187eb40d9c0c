package pagerank

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestTheCallersSliceIsNeverChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 18))
	host := func(id uint32) uint32 { return id % 3 }
	for _, opts := range []Options{{}, {Host: host}, {Cutoff: DL1, Host: host}, {Cutoff: AR}} {
		f := New(opts)
		for range 200 {
			links := randomLinks(r, 7, 50)
			if r.IntN(2) == 0 {
				slices.Sort(links)
			}
			before := slices.Clone(links)
			f.Fetched(r.Uint32N(50), links)
			require.Equal(t, before, links, "%+v", opts.Cutoff)
		}
	}
}

func TestSortedLinksScoreAsOthersDo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 19))
	for _, opts := range []Options{{Cutoff: DL1}, {Cutoff: AR, Threshold: 1}} {
		sorted, shuffled := New(opts), New(opts)
		for id := range uint32(60) {
			links := randomLinks(r, 61, 60)
			slices.Sort(links)
			links = slices.Compact(links)
			sorted.Fetched(id, links)
			r.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
			shuffled.Fetched(id, links)
		}
		for id := range uint32(62) {
			require.InDelta(t, sorted.Score(id), shuffled.Score(id), 1e-9)
		}
		requireLaw(t, sorted)
		requireLaw(t, shuffled)
	}
}

func TestTheHighestIdIsIgnored(t *testing.T) {
	const stray = math.MaxUint32 // an int of 32 bits takes it for -1
	f := New(Options{Host: func(uint32) uint32 { return stray }})
	f.Discover(stray)
	f.Fetched(stray, []uint32{1})
	f.Drop(stray)
	require.Zero(t, pending(f))
	f.Fetched(0, []uint32{stray, 2})
	require.Equal(t, 2, f.Stats().Known)
	require.Zero(t, f.Score(stray))
	id, ok := f.NextReady(func(host uint32) bool { return host == stray })
	require.True(t, ok)
	require.Equal(t, uint32(2), id)
}

func TestGrownKeepsWhatWasThere(t *testing.T) {
	var s []uint64
	for n := range 3000 {
		s = lengthened(s, n)
		require.Len(t, s, n)
		if n > 0 {
			require.Zero(t, s[n-1], "what is new is zero")
			s[n-1] = uint64(n)
		}
	}
	for i, v := range s {
		require.Equal(t, uint64(i+1), v)
	}
}

func TestGrowingOneByOneCopiesSeldom(t *testing.T) {
	var s []uint32
	copies := 0
	for n := range 1 << 16 {
		before := cap(s)
		if s = lengthened(s, n); cap(s) != before {
			copies++
		}
	}
	require.Less(t, copies, 60, "by a quarter each time")
	require.LessOrEqual(t, cap(s), len(s)*5/4+17)
}

func TestANodeIsAQuarterOfACacheLine(t *testing.T) {
	require.Equal(t, uintptr(16), unsafe.Sizeof(node{}))
	require.Equal(t, uintptr(128), unsafe.Sizeof(chunk{}))
}

func TestLevelsFollowTheKey(t *testing.T) {
	for _, key := range []float64{0, -1, math.Inf(-1), math.Copysign(0, -1), 5e-324} {
		require.Zero(t, levelOf(key), "%v", key)
	}
	require.Less(t, levelOf(math.MaxFloat64), uint16(math.MaxInt16))
	require.Less(t, levelOf(math.Inf(1)), uint16(always))
	require.Equal(t, levelOf(1)+perOctave, levelOf(2))
	require.Equal(t, uint16(lowest), levelOf(math.Exp2(-octaves/2)))
	r := rand.New(rand.NewPCG(1, 32))
	for range 2000 {
		a, b := math.Exp2(r.Float64()*90-45), math.Exp2(r.Float64()*90-45)
		if a > b {
			a, b = b, a
		}
		require.LessOrEqual(t, levelOf(a), levelOf(b))
		if levelOf(a) == levelOf(b) {
			require.Less(t, b/a, 1.0626, "a sixteenth above a power of two")
		}
		require.Equal(t, levelOf(a)-lowest, bucketAt(levelOf(a)), "within the range they are alike")
	}
	require.Zero(t, bucketAt(0))
	require.Equal(t, uint16(buckets-1), bucketAt(math.MaxUint16))
}
