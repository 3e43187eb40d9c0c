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
		for _, fair := range []time.Duration{-1, 0, dayLong, 10 * dayLong} {
			last := time.Duration(0)
			for price := 0.01; price < 3; price *= 1.3 {
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
		b := Bayes{Price: 0.01 * math.Exp2(6*random.Float64()), Min: -1, Max: -1}
		next := b.Next(h)
		require.InEpsilon(t, b.Price, b.Worth(h, next), 0.02, "%v %+v", b.Price, h)
		last := 0.0
		for days := 0.5; days < 3000; days *= 2 {
			worth := b.Worth(h, time.Duration(days*float64(dayLong)))
			require.GreaterOrEqual(t, worth, last)
			last = worth
		}
	}
	require.Equal(t, math.Inf(1), Bayes{}.Worth(History{}, 0))
}

func TestFairCountsSlowPagesMore(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	slow, fast := poisson(random, 0.01, 30, 60), poisson(random, 1, 1, 60)
	all := Bayes{Fair: dayLong}
	require.Less(t, all.Next(slow), Bayes{}.Next(slow))
	require.Less(t, Bayes{}.Next(slow), Bayes{Fair: -1}.Next(slow))
	require.Greater(t, Bayes{}.Worth(fast, dayLong), Bayes{}.Worth(slow, dayLong))
	require.Less(t, all.Worth(fast, 30*dayLong), all.Worth(slow, 30*dayLong))
}

func TestFairLooksAfterQuietPages(t *testing.T) {
	quiet := walk(quietFor(16, 30, 60)...)
	require.InDelta(t, 70, inDays(Bayes{}, quiet), 5)
	require.InDelta(t, 150, inDays(Bayes{Fair: -1}, quiet), 5)
	random := rand.New(rand.NewPCG(8, 0))
	for range 100 {
		h := poisson(random, math.Exp2(-10*random.Float64()), 1+20*random.Float64(), random.IntN(40))
		last := time.Duration(0)
		for _, fair := range []time.Duration{dayLong, 10 * dayLong, 30 * dayLong, 300 * dayLong, -1} {
			next := Bayes{Fair: fair, Min: time.Hour}.Next(h)
			require.GreaterOrEqual(t, next, last, "the more pages count alike, the sooner: %+v", h)
			last = next
		}
	}
}

// A busy page has the same interval with any Fair that it is faster than.
func TestFairLeavesBusyPagesAlone(t *testing.T) {
	var steps []step
	for n := range 200 {
		steps = append(steps, step{1, n%2 == 0})
	}
	busy := walk(steps...)
	require.InEpsilon(t, inDays(Bayes{Fair: -1}, busy), inDays(Bayes{}, busy), 0.02)
}

func TestThePriceOfEachEnd(t *testing.T) {
	h := walk(step{7, true}, step{7, false})
	require.Equal(t, dayLong, Bayes{Price: 1e-9}.Next(h))
	require.Equal(t, 365*dayLong, Bayes{Price: 1e6}.Next(h))
	require.Equal(t, 365*dayLong, Bayes{Price: math.NaN()}.Next(h))
	require.Equal(t, Bayes{Price: DefaultPrice, Fair: DefaultFair}.Next(h), Bayes{}.Next(h))
	require.Equal(t, dayLong, Bayes{Price: -1}.Next(h))
}

// After a few visits, a page that changes every eight days is distinguished from one that never
// does.
func TestBayesTellsPagesApart(t *testing.T) {
	still := inDays(Bayes{}, walk(quietFor(8, 8, 8, 8, 8)...))
	moving := inDays(Bayes{}, walk(step{8, true}, step{8, true}, step{8, true}, step{8, true}))
	require.Greater(t, still, 6*moving)
}
