package dedupe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorAtEveryFill looks up absent hashes, at fills from a tenth of the capacity to five times
// the capacity, when the filters have grown. The share of false positives must match Stats within a
// tenth, and must not exceed the rate. If it is too low to be measured that well, as in a nearly
// empty filter, it may be off by five standard deviations.
func TestErrorAtEveryFill(t *testing.T) {
	for _, o := range []Options{
		{Capacity: 20_000, Rate: 0.1},
		{Capacity: 33_000, Rate: 0.02}, // in two shards
		{Capacity: 33_000, Rate: 0.001},
	} {
		t.Run(fmt.Sprintf("capacity=%d/rate=%g", o.Capacity, o.Rate), func(t *testing.T) {
			o.Recent = -1
			f := New(o)
			random := rand.New(rand.NewPCG(1, 0))
			settled := 0
			for _, fill := range []float64{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.3, 1.7, 2, 3, 5} {
				for ; settled < int(fill*float64(o.Capacity)); settled++ {
					hash := random.Uint64()
					f.shards[hash>>f.shift].add(hash)
				}
				requireError(t, f, random, fill)
				require.LessOrEqual(t, f.Stats().Error, o.Rate*1.001)
			}
		})
	}
}

// requireError measures the error of a filter without adding to it.
func requireError(t *testing.T, f *Filter, random *rand.Rand, fill float64) {
	t.Helper()
	promised := f.Stats().Error
	const enough = 2500 // a tenth of it is five standard deviations
	tries := min(enough/promised, 125_000)
	wrong := 0
	for range int(tries) {
		hash := random.Uint64()
		if f.shards[hash>>f.shift].find(hash) > 0 {
			wrong++
		}
	}
	want := promised * tries
	slack := max(want/10, 5*math.Sqrt(want)+3)
	require.InDelta(t, want, wrong, slack, "filled to %g of the plan", fill)
}
