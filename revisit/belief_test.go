package revisit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model is the belief without tables and bytes: the likelihoods of the rates.
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
		steps := quietFor(32) // so that no interval after it is too long
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

func TestMissCostIsThatOfRandomChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for range 20_000 {
		s, k := float64(max(random.Uint32()>>random.UintN(32), 1)), random.IntN(cells)
		want := -math.Log2(-math.Expm1(-rates[k] * s))
		require.InDelta(t, want, missCost(s)[k*missOctave], 0.04, "%v s, cell %d", s, k)
	}
}

// Every sequence of visits leaves a belief with a best rate, and within the tables.
func FuzzBeliefHasABestRate(f *testing.F) {
	f.Add(uint32(1), uint32(0), true, []byte{255, 0, 255})
	f.Add(uint32(math.MaxUint32), uint32(math.MaxUint32), true, []byte{})
	f.Fuzz(func(t *testing.T, gap, tail uint32, changed bool, cellsBefore []byte) {
		var b belief
		copy(b[:], cellsBefore)
		after := b
		gap = max(gap, 1)
		chance := dice(tail)
		after.observe(float64(gap), float64(min(tail, gap-1)), changed, &chance)
		if slices.Min(after[:]) != 0 {
			t.Fatalf("%v after %d s, tail %d, changed %v: %v has no best rate", b, gap, tail, changed, after)
		}
	})
}

// reference is the worth without tables and bits.
func reference(h History, fair, waited time.Duration) float64 {
	sum, worth := 0.0, 0.0
	steadily := func(rate float64) float64 { // equation 3, its logarithm
		if h.changes < steadyFrom {
			return 0
		}
		mean := float64(h.total-h.quiet) / float64(h.changes)
		return float64(h.changes)*math.Log(-math.Expm1(-rate*mean)) - rate*float64(h.quiet)
	}
	best := math.Inf(-1)
	for _, rate := range rates {
		best = max(best, steadily(rate))
	}
	for k, rate := range rates {
		sums := max(steady*(steadily(rate)-best), -steadyMost*math.Ln2)
		evidence := sums - float64(h.belief[k])/perBit*math.Ln2
		w := float64(usual.weight[k]) * math.Exp(trust*evidence)
		sum += w
		worth += w * max(1, 1/(rate*fair.Seconds())) * gain(rate*waited.Seconds())
	}
	return worth / sum
}

func TestWorthIsThatOfTheReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		h := poisson(random, math.Exp2(-9*random.Float64()), 1+20*random.Float64(), random.IntN(60))
		fair := time.Duration(math.Exp2(1+6*random.Float64()) * float64(dayLong))
		waited := time.Duration(math.Exp2(8*random.Float64()) * float64(dayLong))
		want := reference(h, fair, waited)
		require.InDelta(t, want, Bayes{Fair: fair}.Worth(h, waited), 0.02*max(1, want), "%+v", h)
	}
}

func TestGainIsTheDerivativeOfVersionsCaught(t *testing.T) {
	for x := 0.01; x < 30; x *= 1.3 {
		// Rate 1: visits at r = 1/x catch r(1-exp(-1/r)) versions a day.
		caught := func(r float64) float64 { return -r * math.Expm1(-1/r) }
		r, d := 1/x, 1e-5/x
		require.InDelta(t, (caught(r+d)-caught(r-d))/(2*d), gain(x), 1e-6)
	}
	require.InEpsilon(t, 1e-3*1e-3/2, gain(1e-3), 1e-3, "both formulas agree where they meet")
	require.InEpsilon(t, gain(0.999e-3), gain(1.001e-3), 5e-3)
}
