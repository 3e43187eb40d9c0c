package revisit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is the belief in plain numbers, without tables and bytes: the likelihoods of the rates.
func model(steps []step) (likelihood [cells]float64) {
	for k := range likelihood {
		likelihood[k] = 1
	}
	for _, s := range steps {
		best := 0.0
		woke := wake * s.days * day
		for k := range likelihood {
			likelihood[k] += woke / (1 + woke)
			quiet := math.Exp(-rates[k] * s.days * day)
			if s.changed {
				quiet = 1 - quiet
			}
			likelihood[k] *= quiet
			best = max(best, likelihood[k])
		}
		for k := range likelihood {
			likelihood[k] /= best
		}
	}
	return likelihood
}

func TestBeliefIsTheLikelihood(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 500 {
		var steps []step
		for range 1 + random.IntN(20) {
			steps = append(steps, step{math.Exp2(-3 + 8*random.Float64()), random.IntN(2) == 0})
		}
		got, want := walk(steps...).belief, model(steps)
		for k := range want {
			bits := min(-math.Log2(want[k]), 255.0/perBit)
			require.InDelta(t, bits, float64(got[k])/perBit, 0.5, "%v cell %d", steps, k)
		}
	}
}

// One change at a known time: rate*exp(-rate*tail), whatever came before.
func TestBeliefTakesTheTimeOfAChange(t *testing.T) {
	h := walk().Observe(Visit{
		At: start.Add(20 * dayLong), Changed: true, LastModified: start.Add(12 * dayLong),
	})
	best, want := 0, math.Inf(-1)
	for k, r := range rates {
		if v := math.Log(r) - r*8*day; v > want {
			best, want = k, v
		}
	}
	require.Zero(t, h.belief[best], "%v", h.belief)
	fast := walk(step{20, true})
	require.Less(t, fast.belief[cells-1], h.belief[cells-1], "8 quiet days speak against fast rates")
}

func TestCostsAreThoseOfRandomChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for range 20_000 {
		s := random.Uint32() >> random.UintN(32)
		at, k := place(s), random.IntN(cells)
		x := rates[k] * float64(max(s, 1))
		miss := -perBit * math.Log2(-math.Expm1(-x))
		require.InDelta(t, miss, missCost[at][k], 0.9, "%d s, cell %d", s, k)
		// A quiet time costs in proportion, so that the error of the place is one, too.
		quiet := perBit * math.Log2E * x
		require.InDelta(t, min(quiet, 1<<14), quietCost[at][k], 0.5+0.02*quiet, "%d s, cell %d", s, k)
	}
}

func TestFadingAddsTheChanceOfAnotherPage(t *testing.T) {
	for _, days := range []float64{0.01, 1, 30, 1000} {
		x := wake * days * day
		floor := int(floors[place(uint32(days*day))])
		for v := range math.MaxUint8 + 1 {
			want := -perBit * math.Log2(math.Exp2(-float64(v)/perBit)+x/(1+x))
			require.InDelta(t, want, int(fade[farthest+v-floor])+floor, 2, "%v days, %d", days, v)
		}
	}
}

// No visits at all, of any length, make a belief that no tables hold.
func FuzzBeliefStaysWithinItsTables(f *testing.F) {
	f.Add(uint32(1), uint32(0), true, []byte{255, 0, 255})
	f.Add(uint32(math.MaxUint32), uint32(math.MaxUint32), true, []byte{})
	f.Fuzz(func(t *testing.T, gap, tail uint32, changed bool, cellsBefore []byte) {
		var b belief
		copy(b[:], cellsBefore)
		after := b
		after.observe(max(gap, 1), min(tail, gap), changed)
		if after[after.best()] != 0 {
			t.Fatalf("%v after %d s, tail %d, changed %v: %v has no best rate", b, gap, tail, changed, after)
		}
	})
}
