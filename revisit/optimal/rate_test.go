package optimal

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/revisit"
)

// A step is a visit so many days after the one before.
type step struct {
	days    float64
	changed bool
}

// walk makes visits after each of the steps.
const dayLong = 24 * time.Hour

func walk(steps ...step) revisit.History {
	at := time.Unix(1e9, 0)
	h := revisit.History{}.Observe(revisit.Visit{At: at})
	for _, s := range steps {
		at = at.Add(time.Duration(s.days * float64(dayLong)))
		h = h.Observe(revisit.Visit{At: at, Changed: s.changed})
	}
	return h
}

// inDays returns a policy's answer in days.
func inDays(p revisit.Policy, h revisit.History) float64 { return p.Next(h).Hours() / 24 }

func TestCGMIsTheBiasReducedEstimator(t *testing.T) {
	// Cho and Garcia-Molina (2003), section 4.2: n = 10, X = 4 unchanged, I = 2 days.
	var steps []step
	for range 4 {
		steps = append(steps, step{2, false})
	}
	for range 6 {
		steps = append(steps, step{2, true})
	}
	want := 2 / math.Log(10.5/4.5)
	require.InEpsilon(t, want, inDays(CGM{}, walk(steps...)), 1e-3)
	require.InEpsilon(t, want*3, inDays(CGM{Alpha: 3}, walk(steps...)), 1e-3)
	require.InEpsilon(t, 1, inDays(CGM{Alpha: 0.1}, walk(steps...)), 1e-3, "the shortest interval")
	require.Equal(t, revisit.DefaultMax, CGM{Alpha: math.NaN()}.Next(walk(steps...)))
	require.Equal(t, dayLong, CGM{}.Next(revisit.History{}), "as all policies do")
	require.InEpsilon(t, 7, inDays(CGM{}, walk()), 1e-3)
	require.InEpsilon(t, 365, inDays(CGM{}, walk(step{7, false})), 1e-3, "a rate of 0")
}

func TestRateSolvesEquation2(t *testing.T) {
	gap := func(days float64, changed bool) Gap {
		return Gap{time.Duration(days * float64(dayLong)), changed}
	}
	for _, tt := range []struct {
		name string
		gaps []Gap
		want float64
	}{
		{"nothing is known", nil, 0},
		{"no change", []Gap{gap(7, false)}, 0},
		{"changes only", []Gap{gap(7, true)}, math.Inf(1)},
		{
			"equal intervals: ln(T/U)/tc",
			[]Gap{gap(2, true), gap(2, false), gap(2, false)}, math.Log(1.5) / 2,
		},
		{"one quiet gap as long as the change: ln(2)", []Gap{gap(1, true), gap(1, false)}, math.Ln2},
		{
			"gaps of no length say nothing",
			[]Gap{gap(0, true), gap(-1, true), gap(1, true), gap(1, false)}, math.Ln2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Rate(tt.gaps); got != tt.want {
				require.InEpsilon(t, tt.want, got, 1e-9)
			}
		})
	}
}

// likelihood is the logarithm of equation 1.
func likelihood(gaps []Gap, rate float64) (sum float64) {
	for _, g := range gaps {
		if x := rate * g.Length.Hours() / 24; g.Changed {
			sum += math.Log(-math.Expm1(-x))
		} else {
			sum -= x
		}
	}
	return sum
}

func TestRateIsTheTopOfEquation1(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 0))
	for range 200 {
		gaps := []Gap{{dayLong, true}, {dayLong, false}}
		for range random.IntN(20) {
			gaps = append(gaps, Gap{time.Duration(1+random.IntN(1000)) * time.Hour, random.IntN(2) == 0})
		}
		best := Rate(gaps)
		top := likelihood(gaps, best)
		for _, factor := range []float64{0.5, 0.99, 1.01, 2} {
			require.Less(t, likelihood(gaps, best*factor), top, "%v times %v", factor, best)
		}
	}
}

// Equation 4 with the mean interval is close to the exact estimate where intervals are alike.
func TestMLEComesCloseToRate(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 0))
	for range 100 {
		var gaps []Gap
		var steps []step
		for i := range 40 {
			s := step{2 + random.Float64(), i%2 == 0}
			steps = append(steps, s)
			gaps = append(gaps, Gap{time.Duration(s.days * float64(dayLong)), s.changed})
		}
		require.InEpsilon(t, 1/Rate(gaps), inDays(revisit.MLE{Rep: revisit.Mean, Min: -1}, walk(steps...)), 0.02)
	}
}
