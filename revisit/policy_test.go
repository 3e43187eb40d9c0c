package revisit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inDays returns a policy's answer in days.
func inDays(p Policy, h History) float64 { return p.Next(h).Hours() / 24 }

// unbounded are bounds that never apply.
const unbounded = -1

func TestMLEFollowsEquation5(t *testing.T) {
	// Ten visits every two days, of which four found a change: T = 20, U = 12, tc = 2.
	regular := []step{
		{2, true}, {2, false}, {2, false}, {2, true}, {2, false},
		{2, true}, {2, false}, {2, false}, {2, true}, {2, false},
	}
	// T = 12, U = 4, tc,min = 2, tc,avg = 4, tc,mix = sqrt(8).
	irregular := []step{{2, true}, {6, true}, {4, false}}
	for _, tt := range []struct {
		name   string
		policy MLE
		steps  []step
		want   float64 // days
	}{
		{"2nd is a constant", MLE{Second: 15 * dayLong}, nil, 15},
		{"equal intervals solve equation 3", MLE{}, regular, 2 / math.Log(20.0/12)},
		{"min", MLE{Rep: Shortest}, irregular, 2 / math.Log(3)},
		{"avg", MLE{Rep: Mean}, irregular, 4 / math.Log(3)},
		{"mix", MLE{Rep: Mix}, irregular, math.Sqrt(8) / math.Log(3)},
		{"alpha", MLE{Rep: Mean, Alpha: 0.5}, irregular, 2 / math.Log(3)},
		{"U = 0 is the lower branch", MLE{Low: 0.5}, []step{{4, true}, {4, true}}, 2},
		{"mu below mu_l", MLE{Low: 2, Rep: Mean}, irregular, 8},
		{"mu above mu_h", MLE{High: 2, Rep: Mean}, []step{{1, true}, {99, false}}, 2},
		{"alpha times mu_h", MLE{High: 2, Alpha: 0.5, Min: unbounded}, []step{{1, true}, {99, false}}, 1},
		{"U = T multiplies the last interval", MLE{}, quietFor(7), 70},
		{"U = T knows no alpha", MLE{Alpha: 0.5, High: 3}, quietFor(7, 20), 63},
		{"Max bounds it", MLE{}, quietFor(7, 70), 365},
		{"no Max", MLE{Max: unbounded}, quietFor(7, 70), 700},
		{"Min bounds it", MLE{}, []step{{1, true}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.InEpsilon(t, tt.want, inDays(tt.policy, walk(tt.steps...)), 1e-3)
		})
	}
}

// With Last-Modified, section 4.1.3: 10 days with a change on day 4 are tc = 4 and tu = 6.
func TestMLEUsesLastModified(t *testing.T) {
	h := walk().Observe(Visit{
		At: start.Add(10 * dayLong), Changed: true, LastModified: start.Add(4 * dayLong),
	})
	require.InEpsilon(t, 4/math.Log(10.0/6), inDays(MLE{}, h), 1e-3)
}

func TestAIMDFollowsEquation6(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy AIMD
		steps  []step
		want   float64
	}{
		{"2nd", AIMD{}, nil, 7},
		{"no change adds d", AIMD{Add: 2 * dayLong}, quietFor(7), 9},
		{"a change multiplies by r", AIMD{Second: 8 * dayLong, Mul: 0.25}, []step{{8, true}}, 2},
		{"one visit in a row is no reason for the half-day variant", AIMD{Patience: 2}, quietFor(7), 7},
		{"two are", AIMD{Patience: 2}, quietFor(7, 7), 8},
		{"three are not", AIMD{Patience: 2}, quietFor(7, 7, 8), 8},
		{"four are", AIMD{Patience: 2}, quietFor(7, 7, 8, 8), 9},
		{"a change ends the row", AIMD{Patience: 2}, []step{{7, false}, {7, true}, {3.5, false}}, 3.5},
		{"a late visit changes nothing", AIMD{}, quietFor(70), 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.InEpsilon(t, tt.want, inDays(tt.policy, walk(tt.steps...)), 1e-3)
		})
	}
}

func TestRulesOfOtherCrawlers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy Policy
		steps  []step
		want   float64
	}{
		{"Nutch begins with 30 days", Nutch(), nil, 30},
		{"Nutch grows by 0.4", Nutch(), quietFor(30), 42},
		{"Nutch shrinks by 0.2", Nutch(), []step{{30, true}}, 24},
		{"Nutch stops at a year", Nutch(), quietFor(1, 1, 1, 1, 1, 1, 1, 1, 1), 365},
		{"StormCrawler begins with a day", StormCrawler(), nil, 1},
		{"StormCrawler grows by half", StormCrawler(), quietFor(1, 1.5), 2.25},
		{"StormCrawler shrinks by half", StormCrawler(), []step{{1, true}}, 0.5},
		{"StormCrawler stops at two weeks", StormCrawler(), quietFor(1, 1, 1, 1, 1, 1, 1, 1), 14},
		{"a fixed interval", Every(3 * dayLong), []step{{4, true}}, 3},
		{"the zero Scale grows by half", Scale{}, quietFor(7), 10.5},
		{"the zero Scale shrinks by half", Scale{}, []step{{7, true}}, 3.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.InEpsilon(t, tt.want, inDays(tt.policy, walk(tt.steps...)), 1e-3)
		})
	}
}

// policies are all policies with bounds between an hour and 50 days.
func policies() map[string]Policy {
	const low, high = time.Hour, 50 * dayLong
	return map[string]Policy{
		"MLE.mix":  MLE{Min: low, Max: high},
		"MLE.min":  MLE{Rep: Shortest, Low: 0.5, High: 2, Min: low, Max: high},
		"MLE.avg":  MLE{Rep: Mean, Alpha: 0.1, Min: low, Max: high},
		"AIMD":     AIMD{Min: low, Max: high},
		"AIMD.2":   AIMD{Patience: 2, Min: low, Max: high},
		"Scale":    Scale{Min: low, Max: high},
		"Bayes":    Bayes{Min: low, Max: high},
		"Bayes.9":  Bayes{Price: 0.9, Fair: dayLong, Min: low, Max: high},
		"Bayes.nn": Bayes{Price: math.NaN(), Min: low, Max: high},
		"Every":    Every(dayLong),
	}
}

func checkBounds(t *testing.T, h History) {
	for name, p := range policies() {
		if next := p.Next(h); next < time.Hour || next > 50*dayLong {
			t.Fatalf("%s: Next(%+v) = %v", name, h, next)
		}
	}
}

func FuzzNextStaysWithinItsBounds(f *testing.F) {
	f.Add([]byte{0x67, 1, 0x67, 0, 0xff, 1, 0x01, 3})
	f.Add([]byte{0x00, 1, 0x00, 1, 0xff, 0})
	f.Fuzz(func(t *testing.T, data []byte) { checkBounds(t, historyOf(data)) })
}

// A page never visited is due since the year 1. If its first visit fails, the next one waits for
// Min.
func TestAPageNeverVisitedIsDue(t *testing.T) {
	checkBounds(t, History{})
	for name, p := range policies() {
		require.True(t, History{}.Last().Add(p.Next(History{})).Before(start), name)
		if name != "Every" {
			require.Equal(t, time.Hour, p.Next(History{}), name)
		}
	}
}

func TestBoundsAreSane(t *testing.T) {
	h := walk(quietFor(7)...)
	require.Equal(t, 400*dayLong, MLE{Min: 400 * dayLong}.Next(h), "Min wins over Max")
	require.Equal(t, time.Second, Scale{Shrink: 1e-9, Min: -1}.Next(walk(step{1, true})))
	require.Equal(t, century, Scale{Grow: math.Inf(1), Max: -1}.Next(h))
	require.Equal(t, century, Scale{Grow: math.NaN(), Max: -1}.Next(h))
	require.Equal(t, time.Duration(0), Every(-5).Next(h))
}

// All times k-fold give intervals k-fold, for all policies whose parameters are numbers only.
func TestPoliciesAreScaleFree(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for range 300 {
		var near, far []step
		for n := range 1 + random.IntN(12) {
			s := step{1 + 9*random.Float64(), n == 0 || random.IntN(2) == 0}
			near = append(near, s)
			far = append(far, step{s.days * 8, s.changed})
		}
		for _, p := range []Policy{
			MLE{Min: -1, Max: -1}, MLE{Rep: Shortest, Min: -1, Max: -1}, MLE{Rep: Mean, Min: -1, Max: -1},
		} {
			a, b := inDays(p, walk(near...)), inDays(p, walk(far...))
			if b < 36_000 { // a century is the end
				require.InEpsilon(t, 8*a, b, 2e-3, "%T %+v", p, near)
			}
		}
	}
}

// The more of the time was quiet, the longer the interval: mu grows with U/T.
func TestMLEIsMonotoneInQuiet(t *testing.T) {
	last := 0.0
	for days := 1.0; days < 4*365; days *= 1.2 {
		next := inDays(MLE{Rep: Shortest, Max: -1}, walk(step{3, true}, step{days, false}))
		require.GreaterOrEqual(t, next, last*(1-1e-3), "%v quiet days", days)
		last = next
	}
}

func TestPoliciesDoNotAllocate(t *testing.T) {
	h := walk(step{3, true}, step{7, false})
	for name, p := range policies() {
		at := start.Add(100 * dayLong)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			p.Next(h.Observe(Visit{At: at, Changed: true, LastModified: at.Add(-50 * dayLong)}))
		}), name)
	}
}

func BenchmarkObserveNext(b *testing.B) {
	for _, bb := range []struct {
		name   string
		policy Policy
	}{
		{"MLE", MLE{}}, {"AIMD", AIMD{}}, {"Scale", Nutch()}, {"Bayes", Bayes{}},
	} {
		b.Run(fmt.Sprintf("policy=%s", bb.name), func(b *testing.B) {
			b.ReportAllocs()
			h, n := walk(), 0
			for b.Loop() {
				n++
				at := h.Last().Add(time.Duration(1+n%50) * 12 * time.Hour)
				h = h.Observe(Visit{At: at, Changed: n%3 == 0})
				bb.policy.Next(h)
				if n%1000 == 0 {
					h = walk()
				}
			}
		})
	}
}

// TestMaxBelowTheDefaultMin: a default gives way to what the caller says.
func TestMaxBelowTheDefaultMin(t *testing.T) {
	const most = 6 * time.Hour
	busy := walk()
	for range 30 {
		busy = busy.Observe(Visit{At: busy.Last().Add(time.Hour), Changed: true})
	}
	for _, p := range []Policy{Bayes{Max: most}, MLE{Max: most}, AIMD{Max: most}, Scale{Max: most}} {
		for _, h := range []History{{}, busy, walk(quietFor(7, 7)...)} {
			require.LessOrEqual(t, p.Next(h), most, "%T", p)
		}
	}
	require.Equal(t, time.Hour, Bayes{Min: time.Hour, Max: time.Minute}.Next(busy), "Min counts")
}
