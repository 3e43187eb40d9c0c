package layers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorAtEveryFill fills layers with new keys and counts the false positives, from a tenth to
// twice the planned number of keys. Errors that are frequent enough to be counted must be within a
// tenth of what the layer reports.
func TestErrorAtEveryFill(t *testing.T) {
	const keys, probes = 20_000, 300_000
	for _, rate := range []float64{0.05, 0.01, 0.001} {
		t.Run(fmt.Sprintf("rate=%g", rate), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 0))
			l := New(keys, rate)
			for l.Keys() < 2*keys {
				addNew(l, random, keys/10)
				wrong := 0
				for range probes {
					if l.Test(random.Uint64()) {
						wrong++
					}
				}
				want := l.Error() * probes
				slack := max(want/10, 5*math.Sqrt(want)+1)
				require.InDelta(t, want, wrong, slack, "%d keys", l.Keys())
				if l.Keys() == keys {
					require.InEpsilon(t, rate, l.Error(), 0.001)
				}
			}
		})
	}
}

// addNew adds n keys that look new to the layer.
func addNew(l *Layer, random *rand.Rand, n int) {
	for n > 0 {
		if key := random.Uint64(); !l.Test(key) {
			l.Add(key)
			n--
		}
	}
}

// TestTinyErrors looks up three million absent keys where one in a billion may be a false positive.
// Positions that depend on each other would fail here.
func TestTinyErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 0))
	l := New(500, 1e-9)
	addNew(l, random, 500)
	for range 3_000_000 {
		if l.Test(random.Uint64()) {
			t.Fatal("an error of a billionth showed up in three million tries")
		}
	}
}

func TestNothingIsForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	l := New(100, 0.01)
	var added []uint64
	for range 1000 { // ten times too many
		key := random.Uint64()
		l.Add(key)
		added = append(added, key)
		require.True(t, l.Test(key))
	}
	for _, key := range added {
		require.True(t, l.Test(key))
	}
	copied := Of(l.Words(), l.Bits(), l.Functions(), l.Keys())
	require.Equal(t, l.Error(), copied.Error())
	for _, key := range added {
		require.True(t, copied.Test(key))
	}
}

// TestHashesWithACommonPrefix fills a layer with hashes that agree in their highest bits, as those
// of one shard do.
func TestHashesWithACommonPrefix(t *testing.T) {
	const keys, probes = 20_000, 200_000
	random := rand.New(rand.NewPCG(3, 0))
	prefixed := func() uint64 { return 42<<58 | random.Uint64()>>6 }
	l := New(keys, 0.01)
	for range keys {
		l.Add(prefixed())
	}
	wrong := 0
	for range probes {
		if l.Test(prefixed()) {
			wrong++
		}
	}
	require.InEpsilon(t, 0.01, float64(wrong)/probes, 0.15)
}

func TestSizeFollowsTheFormula(t *testing.T) {
	for _, rate := range []float64{0.01, 0.001, 1e-6} {
		size, _ := Size(1e6, rate)
		formula := -math.Log2(rate) / math.Ln2 // bits for a key, Bloom (1970)
		require.InEpsilon(t, formula, float64(size)/1e6, 0.02, rate)
	}
	for _, rate := range []float64{0, 5e-324} { // a share of a tiny rate may be rounded to nothing
		size, functions := Size(1000, rate)
		require.LessOrEqual(t, size, uint64(2_000_000))
		require.LessOrEqual(t, functions, uint64(1000))
	}
	size, functions := Size(0, 0.5)
	require.EqualValues(t, 1, size)
	require.EqualValues(t, 1, functions)
}
