package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// poisson visits a page n times every so many days, while it changes at random at a rate per day.
func poisson(random *rand.Rand, rate, every float64, n int) History {
	var steps []step
	for range n {
		steps = append(steps, step{every, random.Float64() < -math.Expm1(-rate*every)})
	}
	return walk(steps...)
}

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

func TestBayesFindsTheRate(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for _, mean := range []float64{2, 10, 40} {
		h := poisson(random, 1/mean, mean/2, 100)
		// At this price the interval is 0.96 of the mean one; the grid has steps of 2.5.
		next := inDays(Bayes{Price: 0.25, Fair: -1, Min: time.Hour}, h)
		require.Greater(t, next, 0.5*mean)
		require.Less(t, next, 2*mean)
	}
}

func TestBayesForgets(t *testing.T) {
	const awake, asleep = 30, 40
	var steps []step
	for range awake {
		steps = append(steps, step{1, true})
	}
	busy := inDays(Bayes{}, walk(steps...))
	for range asleep {
		steps = append(steps, step{2, false})
	}
	quiet := inDays(Bayes{}, walk(steps...))
	require.Less(t, busy, 2.0)
	require.Greater(t, quiet, 5*busy, "it notices that a page died")
	for range 6 {
		steps = append(steps, step{2, true})
	}
	require.Less(t, inDays(Bayes{}, walk(steps...)), quiet/3, "it notices that a page woke up")
}

func TestADearerVisitComesLater(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 0))
	for range 200 {
		h := poisson(random, math.Exp2(-8*random.Float64()), 1+20*random.Float64(), random.IntN(20))
		for _, fair := range []float64{-1, 0, 0.5, 1} {
			last := time.Duration(0)
			for price := 0.01; price < 1; price += 0.03 {
				next := Bayes{Price: price, Fair: fair, Min: time.Hour}.Next(h)
				require.GreaterOrEqual(t, next, last, "price %v of %+v", price, h)
				last = next
			}
		}
	}
}

func TestWorthReachesThePriceAtNext(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 0))
	for range 300 {
		h := poisson(random, math.Exp2(-8*random.Float64()), 1+20*random.Float64(), random.IntN(30))
		b := Bayes{Price: 0.05 + 0.7*random.Float64(), Min: time.Minute, Max: -1}
		next := b.Next(h)
		require.InDelta(t, b.Price, b.Worth(h, next), 0.002, "%v %+v", b.Price, h)
		last := 0.0
		for days := 0.5; days < 3000; days *= 2 {
			worth := b.Worth(h, time.Duration(days*float64(dayLong)))
			require.GreaterOrEqual(t, worth, last)
			last = worth
		}
	}
	require.Equal(t, math.Inf(1), Bayes{}.Worth(History{}, 0))
}

func TestHintsMakeVisitsWorthMore(t *testing.T) {
	h := walk(quietFor(30, 30)...)
	const price = 0.5
	plain := Bayes{}.Worth(h, dayLong)
	require.Less(t, plain, price)
	require.Equal(t, plain, Bayes{}.Told(h, dayLong, 0))
	require.Equal(t, plain, Bayes{}.Told(h, dayLong, math.NaN()))
	require.Greater(t, Bayes{}.Told(h, dayLong, 0.9), price, "worth a visit at once")
	require.InEpsilon(t, Bayes{}.Worth(h, century), Bayes{}.Told(h, dayLong, 7), 1e-6)
	require.Equal(t, math.Inf(1), Bayes{}.Told(History{}, 0, 0.5))
}

func TestFairCountsSlowPagesMore(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	slow, fast := poisson(random, 0.01, 30, 60), poisson(random, 1, 1, 60)
	require.Less(t, Bayes{Fair: 1}.Next(slow), Bayes{}.Next(slow))
	require.Greater(t, Bayes{}.Worth(fast, dayLong), Bayes{}.Worth(slow, dayLong))
	require.Less(t, Bayes{Fair: 1}.Worth(fast, 30*dayLong), Bayes{Fair: 1}.Worth(slow, 30*dayLong))
}

func TestThePriceOfEachEnd(t *testing.T) {
	h := walk(step{7, true}, step{7, false})
	require.Equal(t, dayLong, Bayes{Price: 1e-9}.Next(h))
	require.Equal(t, 365*dayLong, Bayes{Price: 1e6}.Next(h))
	require.Equal(t, 365*dayLong, Bayes{Price: math.NaN()}.Next(h))
	require.Equal(t, Bayes{Price: DefaultPrice, Fair: DefaultFair}.Next(h), Bayes{}.Next(h))
	require.Equal(t, dayLong, Bayes{Price: -1}.Next(h))
}

// A page that changes every eight days is told from one that never does after a few visits.
func TestBayesTellsPagesApart(t *testing.T) {
	still := inDays(Bayes{}, walk(quietFor(8, 8, 8, 8, 8)...))
	moving := inDays(Bayes{}, walk(step{8, true}, step{8, true}, step{8, true}, step{8, true}))
	require.Greater(t, still, 6*moving)
}

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

func TestFitFindsWhatPagesDo(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 0))
	crowd := func(rate float64) (pages []History) {
		for range 300 {
			pages = append(pages, poisson(random, rate, 5, 10))
		}
		return pages
	}
	slow, fast := Fit(crowd(0.003), Prior{}), Fit(crowd(0.5), Prior{})
	next := func(p Prior) time.Duration { return Bayes{Price: 0.5, Prior: p}.Next(walk()) }
	require.Less(t, next(fast), next(Prior{}))
	require.Greater(t, next(slow), next(Prior{}))
	again := Fit(crowd(0.003), fast)
	require.Greater(t, next(again), next(fast), "it learns from where it is")
}

func TestFitOfNothingIsTheStart(t *testing.T) {
	want := Prior{}.orUsual().scaled()
	for _, pages := range [][]History{nil, {{}}, {walk()}} {
		got := Fit(pages, Prior{})
		for k := range want.weight {
			require.InDelta(t, want.weight[k], got.weight[k], 1e-6)
		}
	}
}

func TestFitDoesNotAllocate(t *testing.T) {
	pages := []History{walk(step{7, true}), walk(quietFor(7)...)}
	require.Zero(t, testing.AllocsPerRun(10, func() { Fit(pages, Prior{}) }))
}

func FuzzFitIsAPrior(f *testing.F) {
	f.Add([]byte{0x67, 1, 0x67, 0, 0xff, 1, 0x01, 3}, []byte{0xff, 0, 0xff, 0})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p := Fit([]History{historyOf(a), historyOf(b)}, Prior{})
		sum := float32(0)
		for _, w := range p.weight {
			if !(w > 0) {
				t.Fatalf("%v", p)
			}
			sum += w
		}
		if math.Abs(float64(sum-1)) > 1e-3 {
			t.Fatalf("%v adds up to %v", p, sum)
		}
	})
}

func TestLog2IsCloseEnough(t *testing.T) {
	for v := 1e-15; v < 1e15; v *= 1.0007 {
		require.InDelta(t, math.Log2(v), log2(v), 3e-6, "%v", v)
	}
}
