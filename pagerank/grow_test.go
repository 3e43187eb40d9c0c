package pagerank

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

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
	require.Len(t, lengthened(s, 10), len(s), "it never gets shorter")
	room := grown(s, 5000)
	require.Len(t, room, len(s))
	require.GreaterOrEqual(t, cap(room), 5000)
	require.Equal(t, cap(room), cap(grown(room, 5000)), "there is room already")
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

// TestBigPagesHoldTheSame writes to all of an array that is large enough to ask for them.
func TestBigPagesHoldTheSame(t *testing.T) {
	s := lengthened[uint32](nil, 8<<20)
	for i := 0; i < len(s); i += 1000 {
		require.Zero(t, s[i])
		s[i] = uint32(i)
	}
	s = lengthened(s, 9<<20)
	for i := 0; i < 8<<20; i += 1000 {
		require.Equal(t, uint32(i), s[i])
	}
	require.Zero(t, s[len(s)-1])
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
