package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoadStretchesACrowdedHost(t *testing.T) {
	var l Load
	require.Equal(t, 1.0, l.Stretch(10))
	for range 30 {
		l.Book(dayLong)
	}
	l.Book(2 * dayLong)
	require.InDelta(t, 30.5, l.PerDay(), 1e-6)
	require.InDelta(t, 3.05, l.Stretch(10), 1e-6)
	require.Equal(t, 1.0, l.Stretch(100))
	require.Equal(t, math.Inf(1), l.Stretch(0))
	require.Equal(t, math.Inf(1), l.Stretch(math.NaN()))
	l.Cancel(2 * dayLong)
	require.InDelta(t, 30, l.PerDay(), 1e-6)
}

func TestLoadComesBackToNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var l Load
	var booked []time.Duration
	for range 10_000 {
		d := time.Duration(random.Int64N(int64(400 * dayLong)))
		booked = append(booked, d)
		l.Book(d)
	}
	for _, d := range booked {
		l.Cancel(d)
	}
	require.Equal(t, Load{}, l)
	l.Cancel(dayLong)
	require.Equal(t, Load{}, l, "what was not booked cannot be owed")
}

// Stretched by the factor, the intervals make as many visits as the host admits.
func TestStretchedIntervalsFit(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for range 50 {
		var l Load
		var booked []float64
		for range 1 + random.IntN(200) {
			d := 1 + 100*random.Float64()
			booked = append(booked, d)
			l.Book(time.Duration(d * float64(dayLong)))
		}
		admits := l.PerDay() * (0.1 + random.Float64())
		factor, visits := l.Stretch(admits), 0.0
		for _, d := range booked {
			visits += 1 / (d * factor)
		}
		require.LessOrEqual(t, visits, admits*(1+1e-6))
		require.GreaterOrEqual(t, factor, 1.0)
	}
}

func TestSteerBringsDemandToTheBudget(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	var pages []History
	for range 200 {
		pages = append(pages, poisson(random, math.Exp2(-8*random.Float64()), 5, 20))
	}
	demand := func(price float64) (perDay float64) {
		for _, h := range pages {
			perDay += 24 / Bayes{Price: price, Max: -1}.Next(h).Hours()
		}
		return perDay
	}
	for _, budget := range []float64{5, 10, 30, 60} {
		price := DefaultPrice
		for range 100 {
			price = Steer(price, demand(price), budget)
		}
		require.InEpsilon(t, budget, demand(price), 0.02, "price %v", price)
	}
	require.Equal(t, 0.3, Steer(0.3, 0, 5), "nothing was asked for")
	require.Equal(t, 0.3, Steer(0.3, 5, 0), "nothing can be done")
	require.Equal(t, 100.0, Steer(1e9, 5, 5))
	require.Equal(t, DefaultPrice, Steer(0, 5, 5))
}

func TestSteerTakesSmallSteps(t *testing.T) {
	for _, tt := range []struct {
		name          string
		price, demand float64
		want          float64
	}{
		{"twice the demand, low price", 0.1, 20, 0.1 * math.Pow(2, 1.0/4)},
		{"half of it", 0.1, 5, 0.1 * math.Pow(0.5, 1.0/4)},
		{"no step is longer than for 16 times", 0.1, 1e9, 0.2},
		{"nearly a whole version", 0.9, 20, 0.9 * math.Pow(2, 1.0/16)},
		{"as it should be", 0.3, 10, 0.3},
	} {
		require.InEpsilon(t, tt.want, Steer(tt.price, tt.demand, 10), 1e-9, tt.name)
	}
}

// caught is what Allocate maximizes, fresh what Freshen does.
func caught(p Page, visits float64) float64 {
	if visits == 0 {
		return 0
	}
	return -weightOf(p) * visits * math.Expm1(-p.Rate/visits)
}

func fresh(p Page, visits float64) float64 { return caught(p, visits) / p.Rate }

func total(pages []Page, visits []float64, of func(Page, float64) float64) (sum float64) {
	for i, p := range pages {
		sum += of(p, visits[i])
	}
	return sum
}

func randomPages(random *rand.Rand, n, hosts int) (pages []Page) {
	for range n {
		pages = append(pages, Page{
			Rate: math.Exp2(-10 * random.Float64()), Weight: 0.5 + random.Float64(),
			Host: random.IntN(hosts),
		})
	}
	return pages
}

func TestEqualVersionsGetEqualMultiples(t *testing.T) {
	pages := []Page{{Rate: 1}, {Rate: 0.1}, {Rate: 0.01}}
	visits, price := Allocate(pages, Budget{Visits: 1.11})
	for i, p := range pages {
		require.InEpsilon(t, p.Rate, visits[i], 1e-6, "one visit per mean interval, for all")
	}
	require.InEpsilon(t, gain(1), price, 1e-6)
}

// No visits moved from one page to another one, within the bounds, catch more.
func TestAllocationsCannotBeImproved(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 0))
	for _, tt := range []struct {
		name  string
		solve func([]Page, Budget) ([]float64, float64)
		value func(Page, float64) float64
	}{{"Allocate", Allocate, caught}, {"Freshen", Freshen, fresh}} {
		t.Run(tt.name, func(t *testing.T) {
			for range 30 {
				pages := randomPages(random, 20, 4)
				b := Budget{Visits: 0.2 + 3*random.Float64(), Hosts: []float64{0.1, 0.3, 50}}
				visits, _ := tt.solve(pages, b)
				best := total(pages, visits, tt.value)
				requireWithin(t, pages, visits, b)
				for range 300 {
					from, to := random.IntN(len(pages)), random.IntN(len(pages))
					moved := visits[from] * random.Float64() / 10
					if pages[from].Host != pages[to].Host && pages[to].Host < 2 {
						continue // a bounded host has no room
					}
					visits[from] -= moved
					visits[to] += moved
					require.LessOrEqual(t, total(pages, visits, tt.value), best*(1+1e-9))
					visits[from] += moved
					visits[to] -= moved
				}
			}
		})
	}
}

// requireWithin checks the bounds, and that nothing is left over that some host could use.
func requireWithin(t *testing.T, pages []Page, visits []float64, b Budget) {
	t.Helper()
	sum, hosts := 0.0, make([]float64, 10)
	for i, v := range visits {
		require.GreaterOrEqual(t, v, 0.0)
		sum += v
		hosts[pages[i].Host] += v
	}
	require.InEpsilon(t, b.Visits, sum, 1e-6)
	for h, bound := range b.Hosts {
		require.LessOrEqual(t, hosts[h], bound*(1+1e-6), "host %d", h)
	}
}

func TestFreshenAbandonsWhatChangesTooFast(t *testing.T) {
	pages := []Page{{Rate: 100}, {Rate: 0.1}}
	visits, _ := Freshen(pages, Budget{Visits: 0.3})
	require.Zero(t, visits[0])
	require.InEpsilon(t, 0.3, visits[1], 1e-6)
	visits, _ = Allocate(pages, Budget{Visits: 0.3})
	require.InEpsilon(t, 0.3*100/100.1, visits[0], 1e-6, "an archive does not")
}

func TestAllocateTakesWhatIsThere(t *testing.T) {
	one, all := Page{Rate: 1}, Budget{Visits: 2}
	hosts := func(bounds ...float64) Budget { return Budget{Visits: 2, Hosts: bounds} }
	for _, tt := range []struct {
		name   string
		pages  []Page
		budget Budget
		want   []float64
	}{
		{"no pages", nil, all, []float64{}},
		{"no visits", []Page{one}, Budget{}, []float64{0}},
		{"a page that never changes gets none", []Page{{}, one}, all, []float64{0, 2}},
		{"nor does one of no rate", []Page{{Rate: math.NaN()}, one}, all, []float64{0, 2}},
		{"nor one of an endless rate", []Page{{Rate: math.Inf(1)}, one}, all, []float64{0, 2}},
		{"nor one of negative worth", []Page{{Rate: 1, Weight: -1}, one}, all, []float64{0, 2}},
		{"hosts that admit nothing", []Page{one, {Rate: 1, Host: 1}}, hosts(0, -1), []float64{0, 0}},
		{"hosts that admit less than there is", []Page{one}, hosts(0.5), []float64{0.5}},
		{"a host without a bound", []Page{{Rate: 1, Host: -1}}, hosts(0.5), []float64{2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := Allocate(tt.pages, tt.budget)
			require.InDeltaSlice(t, tt.want, got, 1e-6)
		})
	}
}
