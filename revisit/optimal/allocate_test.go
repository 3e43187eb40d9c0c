package optimal

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/revisit"
)

const dayLong = 24 * time.Hour

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

// Moving visits from one page to another, within the bounds, does not catch more.
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

// requireWithin checks the bounds, and that no host could use more.
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

// TestRareVisitsStayWithinTheBudget: a single page wants more than all visits, or none.
func TestRareVisitsStayWithinTheBudget(t *testing.T) {
	pages := []Page{{Rate: 700, Weight: 2, Host: 0}, {Rate: 10, Host: 1}}
	visits, _ := Allocate(pages, Budget{Visits: 0.5, Hosts: []float64{9, 9}})
	require.InEpsilon(t, 0.5, visits[0], 1e-9)
	require.Zero(t, visits[1])
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

// What package revisit says of Bayes with its defaults, for pages whose rates are known, to a
// twentieth.
func TestTheDefaultsOfBayesVisitAsOftenAsTheyClaim(t *testing.T) {
	for _, tt := range []struct{ mean, want float64 }{{1, 1.7}, {21, 35}, {365, 113}} {
		counts := max(1, tt.mean/(revisit.DefaultFair.Hours()/24))
		require.InEpsilon(t, tt.want, tt.mean*gainInverse(revisit.DefaultPrice/counts), 0.05)
	}
}
