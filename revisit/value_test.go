package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGainIsTheDerivativeOfVersionsCaught(t *testing.T) {
	for x := 0.01; x < 30; x *= 1.3 {
		// Rate 1: visits at r = 1/x catch r(1-exp(-1/r)) versions a day.
		caught := func(r float64) float64 { return -r * math.Expm1(-1/r) }
		r, d := 1/x, 1e-5/x
		require.InDelta(t, (caught(r+d)-caught(r-d))/(2*d), gain(x), 1e-6)
		require.InEpsilon(t, x, gainInverse(gain(x)), 1e-3)
	}
	require.InEpsilon(t, 1e-3*1e-3/2, gain(1e-3), 1e-3, "both formulas agree where they meet")
	require.InEpsilon(t, gain(0.999e-3), gain(1.001e-3), 5e-3)
}

func TestMarksLieBelow(t *testing.T) {
	for s := 1.0; s < century.Seconds(); s *= 1.0007 {
		at := mark(s)
		require.LessOrEqual(t, times[at], s*(1+1e-9))
		require.Greater(t, times[at+1], s*(1-1e-9))
	}
	most := mark(century.Seconds()) + 1
	require.LessOrEqual(t, most+spanMarks, marks, "the fastest rate has gains for a century")
}

// reference is the worth in plain numbers, without tables, marks and bytes.
func reference(h History, fair, waited time.Duration) float64 {
	sum, worth := 0.0, 0.0
	add := func(width, prior, bits, point float64) {
		rate := slowest * math.Exp2(point*cellOctave)
		w := width * prior * math.Exp2(-trust*bits)
		sum += w
		worth += w * max(1, 1/(rate*fair.Seconds())) * gain(rate*waited.Seconds())
	}
	cell := func(k int) float64 { return float64(h.belief[k]) / perBit }
	if h.changes < steadyFrom {
		for k := range cells {
			add(1, float64(usual.weight[k]), cell(k), float64(k))
		}
		return worth / sum
	}
	best := h.belief.best()
	first, last := max(best-near, 0), min(best+near, cells-1)
	drop := steadyDrop(h, first, last)
	for k := range cells {
		width := 1.0
		if k > first && k <= last {
			width -= 0.25
		}
		if k < last && k >= first {
			width -= 0.25
		}
		bits := float64(steadyMost)
		if k >= first && k <= last {
			bits = drop(float64(k))
		}
		add(width, float64(usual.weight[k]), cell(k)+bits, float64(k))
	}
	for k := first; k < last; k++ {
		before, after := cell(max(k-1, 0)), cell(min(k+2, cells-1))
		bits := (9*(cell(k)+cell(k+1))-before-after)/16 + drop(float64(k)+0.5)
		add(0.5, float64(usual.weight[k]+usual.weight[k+1])/2, bits, float64(k)+0.5)
	}
	return worth / sum
}

// steadyDrop returns what the sums of h cost a point in bits.
func steadyDrop(h History, first, last int) func(point float64) float64 {
	cost := func(point float64) float64 {
		rate := slowest * math.Exp2(point*cellOctave)
		mean := float64(h.total-h.quiet) / float64(h.changes)
		miss := -float64(h.changes) * math.Log2(-math.Expm1(-rate*mean))
		return steady * (miss + math.Log2E*rate*float64(h.quiet))
	}
	best := math.Inf(1)
	for point := float64(first); point <= float64(last); point += 0.5 {
		best = min(best, cost(point))
	}
	return func(point float64) float64 { return min(cost(point)-best, steadyMost) }
}

func TestWorthIsThatOfTheReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		h := poisson(random, math.Exp2(-9*random.Float64()), 1+20*random.Float64(), random.IntN(60))
		fair := time.Duration(math.Exp2(1+6*random.Float64()) * float64(dayLong))
		waited := time.Duration(math.Exp2(8*random.Float64()) * float64(dayLong))
		want := reference(h, fair, waited)
		got := Bayes{Fair: fair}.Worth(h, waited)
		// Costs of many changes are rounded once for all of them, hence the 6 %.
		require.InDelta(t, want, got, 0.01+0.06*want, "%+v after %v", h, waited)
	}
}

// A belief alone cannot tell a rate between two of its cells from both.
func TestSumsTellRatesApart(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for _, mean := range []float64{1.5, 2, 2.5, 3, 4, 5} {
		sum := 0.0
		const pages = 20
		for range pages {
			h := poisson(random, 1/mean, 1, 365)
			sum += inDays(Bayes{Price: 0.3, Fair: -1, Min: time.Hour}, h)
		}
		// At this price a page of a known rate waits for 1.1 of its mean intervals.
		// Points lie a factor of 1.6 apart, and the nearest one wins.
		require.InEpsilon(t, 1.1*mean, sum/pages, 0.27, "a change in %v days", mean)
	}
}

// What the sums say is bounded, or a page that slept for years would be taken for asleep.
func TestSumsDoNotBindAPageThatWokeUp(t *testing.T) {
	var steps []step
	for range 10 {
		steps = append(steps, step{100, true}, step{100, false}, step{100, false})
	}
	asleep := inDays(Bayes{}, walk(steps...))
	require.Greater(t, asleep, 80.0)
	for range 6 {
		steps = append(steps, step{1, true})
	}
	require.Less(t, inDays(Bayes{}, walk(steps...)), 6.0)
}

// Beyond the interval, the versions of a year count together as much at each rate.
func TestFairnessMakesSlowPagesAlike(t *testing.T) {
	for _, fair := range []time.Duration{time.Hour, dayLong, 30 * dayLong, century} {
		for i, count := range fairness(fair) {
			perYear := rateAt(i) * 365 * day
			want := max(perYear, 365*day/fair.Seconds())
			require.InEpsilon(t, want, perYear*float64(count), 1e-5, "%v at %d", fair, i)
		}
	}
	for _, count := range fairness(-1) {
		require.EqualValues(t, 1, count)
	}
}

// Whatever bytes a belief holds, its cost finds a weight.
func TestNoCostLeavesTheWeights(t *testing.T) {
	for _, cells := range [][4]byte{
		{255, 0, 0, 255}, {0, 255, 255, 0}, {255, 255, 255, 255}, {0, 0, 0, 0},
	} {
		b := belief{4: cells[0], 5: cells[1], 6: cells[2], 7: cells[3]}
		low, high := weightFrom+b.between(5), weightFrom+b.between(5)+steadyMost*perBit
		require.GreaterOrEqual(t, low, 0, "%v", b)
		require.Less(t, high, len(weights), "%v", b)
	}
	require.Less(t, weightFrom+math.MaxUint8+steadyMost*perBit, len(weights))
}

func TestBetweenFollowsASmoothLikelihood(t *testing.T) {
	// A parabola with its top halfway between cells 5 and 6.
	var b belief
	for k := range b {
		off := float64(k) - 5.5
		b[k] = uint8(min(6*off*off, math.MaxUint8))
	}
	require.InDelta(t, 0, b.between(5), 1)
	require.InDelta(t, 6, b.between(4), 1.5)
	require.InDelta(t, b[cells-1], b.between(cells-2), 40, "there is nothing beyond the last cell")
}

func FuzzWorthGrows(f *testing.F) {
	f.Add([]byte{0x67, 1, 0x67, 0, 0xff, 1, 0x01, 3}, int64(DefaultFair))
	f.Add([]byte{0xff, 1, 0xff, 1, 0xff, 1, 0xff, 0}, int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, fair int64) {
		h, last := historyOf(data), 0.0
		for days := 0.01; days < 40_000; days *= 1.5 {
			waited := time.Duration(min(days, 36_500) * float64(dayLong))
			worth := Bayes{Fair: time.Duration(fair)}.Worth(h, waited)
			if !(worth >= last*(1-1e-5)) || math.IsInf(worth, 0) {
				t.Fatalf("%+v: %v after %v, %v before", h, worth, waited, last)
			}
			last = worth
		}
	})
}

func BenchmarkWorth(b *testing.B) {
	h := walk(step{3, true}, step{7, false}, step{9, true}, step{8, true})
	b.ReportAllocs()
	for b.Loop() {
		Bayes{}.Worth(h, 5*dayLong)
	}
}
