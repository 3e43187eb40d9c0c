package revisit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A kind is a pattern of changes over a year, given a page's mean interval in days. All of them are
// made up; only the first one was used to choose the parameters of Bayes.
type kind struct {
	name    string
	changes func(random *rand.Rand, mean float64) (days []float64)
	least   float64 // lead over MLE that is asked for, as a share of all versions
}

const yearDays = 365

// renewal returns changes whose gaps are drawn one by one.
func renewal(gap func() float64) (days []float64) {
	for d := gap(); d < yearDays; d += max(gap(), 0.01) {
		days = append(days, d)
	}
	return days
}

var kinds = []kind{
	{"at random", func(random *rand.Rand, mean float64) []float64 {
		return renewal(func() float64 { return random.ExpFloat64() * mean })
	}, 0.005},
	{"regularly", func(random *rand.Rand, mean float64) []float64 {
		return renewal(func() float64 { return mean * (1 + 0.05*random.NormFloat64()) })
	}, 0.03},
	{"in bursts", func(random *rand.Rand, mean float64) []float64 {
		return renewal(func() float64 {
			if random.IntN(5) > 0 {
				return random.ExpFloat64() * mean / 10
			}
			return random.ExpFloat64() * mean * 4.6
		})
	}, 0.01},
	{"by seasons", func(random *rand.Rand, mean float64) (days []float64) {
		for from := 0.0; from < yearDays; from += 73 {
			m := mean * math.Exp(1.2*random.NormFloat64())
			for d := from + random.ExpFloat64()*m; d < from+73; d += random.ExpFloat64() * m {
				days = append(days, d)
			}
		}
		return days
	}, 0.03},
	{"until they die", func(random *rand.Rand, mean float64) []float64 {
		all := renewal(func() float64 { return random.ExpFloat64() * mean })
		dead, _ := slices.BinarySearch(all, 100+100*random.Float64())
		return all[:dead]
	}, 0.08},
	{"once they wake up", func(random *rand.Rand, mean float64) []float64 {
		all := renewal(func() float64 { return random.ExpFloat64() * mean })
		awake, _ := slices.BinarySearch(all, 100+100*random.Float64())
		return all[awake:]
	}, 0},
}

// visitYear visits a page for a year, and returns how often, and how many versions it caught.
func visitYear(p Policy, changes []float64) (visits, caught int) {
	h := History{}.Observe(Visit{At: start})
	seen, _ := slices.BinarySearch(changes, 0)
	for d := inDays(p, h); d < yearDays; d += inDays(p, h) {
		now, _ := slices.BinarySearch(changes, d)
		h = h.Observe(Visit{
			At: start.Add(time.Duration(d * float64(dayLong))), Changed: now > seen,
		})
		visits++
		if now > seen {
			caught++
		}
		seen = now
	}
	return visits, caught
}

func visitAll(p Policy, pages [][]float64) (visits, caught int) {
	for _, changes := range pages {
		v, c := visitYear(p, changes)
		visits, caught = visits+v, caught+c
	}
	return visits, caught
}

// atCost returns what Bayes catches with as many visits, at the price that makes it so.
func atCost(pages [][]float64, visits int) (caught int) {
	low, high := math.Log(0.005), math.Log(2.0)
	for range 10 {
		mid := (low + high) / 2
		v, c := visitAll(Bayes{Price: math.Exp(mid)}, pages)
		if v > visits {
			low = mid
		} else {
			high, caught = mid, c // not more than so many visits
		}
	}
	return caught
}

func TestBayesCatchesMoreThanMLEAtEqualVisits(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 0))
			var pages [][]float64
			versions := 0
			for range 90 {
				changes := k.changes(random, math.Exp2(1+6*random.Float64()))
				pages = append(pages, changes)
				versions += len(changes)
			}
			for _, alpha := range []float64{1, 0.5} {
				visits, paper := visitAll(MLE{Alpha: alpha}, pages)
				lead := float64(atCost(pages, visits)-paper) / float64(versions)
				t.Logf("alpha %v: %d visits, %+.3f", alpha, visits, lead)
				require.GreaterOrEqual(t, lead, k.least, "alpha %v", alpha)
			}
		})
	}
}

// A page that changes every week is not visited much more often than that when visits are dear.
func TestARegularPageIsVisitedAtItsPace(t *testing.T) {
	var changes []float64
	for d := 3.5; d < yearDays; d += 7 {
		changes = append(changes, d)
	}
	visits, caught := visitYear(Bayes{Price: 0.3}, changes)
	require.Greater(t, caught, len(changes)*3/4, "%d visits", visits)
	require.Less(t, visits, len(changes)*7/4)
}

// When a page stops changing, most visits stop too; when it starts again, it is noticed.
func TestVisitsFollowAPageThroughItsLife(t *testing.T) {
	var changes []float64
	for d := 0.5; d < yearDays; d++ {
		if d < 100 || d > 250 {
			changes = append(changes, d)
		}
	}
	policy := Bayes{Price: 0.1}
	h := History{}.Observe(Visit{At: start})
	var perPhase [3]int
	for d := inDays(policy, h); d < yearDays; d += inDays(policy, h) {
		before, _ := slices.BinarySearch(changes, h.Last().Sub(start).Hours()/24)
		now, _ := slices.BinarySearch(changes, d)
		h = h.Observe(Visit{At: start.Add(time.Duration(d * float64(dayLong))), Changed: now > before})
		switch {
		case d < 100:
			perPhase[0]++
		case d < 250:
			perPhase[1]++
		default:
			perPhase[2]++
		}
	}
	require.Greater(t, perPhase[0], 80)
	require.Less(t, perPhase[1], 30, "150 quiet days")
	require.Greater(t, perPhase[2], 60)
}

// TestSettledIntervals visits pages for decades that change at random, as the defaults say.
func TestSettledIntervals(t *testing.T) {
	for _, tt := range []struct{ every, least, most float64 }{ // in days
		{1, 1.75, 1.85}, {21, 29.5, 34.5}, {365, 6.5 * 7, 11.5 * 7},
	} {
		for _, part := range []float64{0.3, 1, 1.7} { // of the mean interval, from visit to visit
			sum := 0.0
			const pages = 20
			for seed := range uint64(pages) {
				random := rand.New(rand.NewPCG(seed, 2))
				h, next := walk(), random.ExpFloat64()*tt.every
				for n := range min(1000, int(30*365/(part*tt.every))) {
					at, changed := float64(n+1)*part*tt.every, false
					for ; next <= at; next += random.ExpFloat64() * tt.every {
						changed = true
					}
					h = h.Observe(Visit{At: start.Add(time.Duration(at * float64(dayLong))), Changed: changed})
				}
				sum += inDays(Bayes{}, h) / pages
			}
			require.True(t, sum >= tt.least && sum <= tt.most, "every %v, visited at %v of it: %v", tt.every, part, sum)
		}
	}
}
