package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDemandStretchesACrowdedHost(t *testing.T) {
	var d Demand
	require.Equal(t, 1.0, d.Stretch(10))
	for range 30 {
		d.Add(dayLong)
	}
	d.Add(2 * dayLong)
	require.InDelta(t, 30.5, d.PerDay(), 1e-6)
	require.InDelta(t, 3.05, d.Stretch(10), 1e-6)
	require.Equal(t, 1.0, d.Stretch(100))
	require.Equal(t, math.Inf(1), d.Stretch(0))
	require.Equal(t, math.Inf(1), d.Stretch(math.NaN()))
	d.Remove(2 * dayLong)
	require.InDelta(t, 30, d.PerDay(), 1e-6)
}

func TestDemandComesBackToNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var d Demand
	var added []time.Duration
	for range 10_000 {
		interval := time.Duration(random.Int64N(int64(400 * dayLong)))
		added = append(added, interval)
		d.Add(interval)
	}
	for _, interval := range added {
		d.Remove(interval)
	}
	require.Equal(t, Demand{}, d)
	d.Remove(dayLong)
	require.Equal(t, Demand{}, d, "what was not added cannot be owed")
}

// Stretched by the factor, the intervals make as many visits as the host admits.
func TestStretchedIntervalsFit(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	for range 50 {
		var d Demand
		var added []float64
		for range 1 + random.IntN(200) {
			days := 1 + 100*random.Float64()
			added = append(added, days)
			d.Add(time.Duration(days * float64(dayLong)))
		}
		admits := d.PerDay() * (0.1 + random.Float64())
		factor, visits := d.Stretch(admits), 0.0
		for _, days := range added {
			visits += 1 / (days * factor)
		}
		require.LessOrEqual(t, visits, admits*(1+1e-6))
		require.GreaterOrEqual(t, factor, 1.0)
	}
}

// So many pages visited every second are beyond any host, but must not look like few.
func TestDemandStaysAtItsLimit(t *testing.T) {
	var d Demand
	for range 100_000 {
		d.Add(time.Nanosecond)
	}
	require.InEpsilon(t, float64(1<<32), d.PerDay(), 1e-3)
	d.Remove(time.Second)
	require.Less(t, d.PerDay(), float64(1<<32)-80_000)
}
