package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEqualPagesGainNothing(t *testing.T) {
	alike := []float64{0.1, 0.1, 0.1}
	first, best := crowded(alike, 0.3, 0.5)
	require.InEpsilon(t, best, first, 1e-9)
	require.InEpsilon(t, 3*perDay(0.1, 20), best, 1e-9, "visits in ten days become visits in twenty")
	first, best = crowded(nil, 1, 0.5)
	require.Zero(t, first+best)
}

func TestAServerBelowCapacityIsNotCrowded(t *testing.T) {
	mixed := []float64{0.01, 0.1, 1}
	first, best := crowded(mixed, 1, 1)
	require.InEpsilon(t, best, first, 1e-6)
}

// The best order gives each page visits in proportion to its rate, and no visit would catch more at
// another page.
func TestTheBestOrderIsTheBestAllocation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 20 {
		rates, sum := []float64{}, 0.0
		for range 2 + random.IntN(20) {
			rates = append(rates, math.Exp2(-8*random.Float64()))
			sum += rates[len(rates)-1]
		}
		demand, share := 0.3+random.Float64(), 0.3+0.6*random.Float64()
		first, best := crowded(rates, demand, share)
		visits, want := make([]float64, len(rates)), 0.0
		for i, rate := range rates {
			visits[i] = rate / sum * demand * share
			want += perDay(rate, 1/visits[i])
		}
		require.InEpsilon(t, want, best, 1e-6)
		require.GreaterOrEqual(t, best, first*(1-1e-9))
		for range 100 {
			from, to := random.IntN(len(rates)), random.IntN(len(rates))
			moved := random.Float64() * visits[from]
			if from != to {
				gain := perDay(rates[to], 1/(visits[to]+moved)) - perDay(rates[to], 1/visits[to])
				loss := perDay(rates[from], 1/visits[from]) - perDay(rates[from], 1/(visits[from]-moved))
				require.LessOrEqual(t, gain, loss+1e-12)
			}
		}
	}
}

// This simulates first come in steady state: each page is due again an interval after its visit,
// and the server takes the page that has been due the longest.
func TestFirstComeDelaysAllPagesEqually(t *testing.T) {
	rates := []float64{0.02, 0.05, 0.1, 0.3, 0.8}
	const demand, share, days = 0.9, 0.5, 200_000.0
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	var due, last, caught [5]float64
	for now := 0.0; now < days; now += 1 / (demand * share) {
		n := 0
		for i := range due {
			if due[i] < due[n] {
				n = i
			}
		}
		caught[n] += -math.Expm1(-rates[n] * (now - last[n]))
		last[n], due[n] = now, now+sum/demand/rates[n]
	}
	total := 0.0
	for _, c := range caught {
		total += c / days
	}
	first, best := crowded(rates, demand, share)
	require.InEpsilon(t, first, total, 0.02)
	require.Greater(t, best, first)
}

func TestOrderGainsLittle(t *testing.T) {
	pages := synthesize(400, 2, 1, 5)
	l := lab{step: 1}
	mild, hard := l.orderGain(pages, 0.75), l.orderGain(pages, 0.5)
	require.Greater(t, mild, 1.0)
	require.Greater(t, hard, mild)
	require.Less(t, hard, 1.1, "less than the target")
}
