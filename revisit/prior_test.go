package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	want := usual.scaled()
	for _, pages := range [][]History{nil, {{}}, {walk()}} {
		got := Fit(pages, Prior{})
		for k := range want.weight {
			require.InDelta(t, want.weight[k], got.weight[k], 1e-6)
		}
	}
}

// A Prior from elsewhere may have weights that no division leaves above 0.
func TestFitTakesTheSmallestWeights(t *testing.T) {
	var p Prior
	for k := range p.weight {
		p.weight[k] = math.SmallestNonzeroFloat32
	}
	p.weight[0], p.weight[1], p.weight[2] = 1, 1, 1
	b, _ := p.AppendBinary(nil)
	require.NoError(t, p.UnmarshalBinary(b))
	steps := make([]step, 4000)
	for i := range steps {
		steps[i] = step{0.05, true}
	}
	b, _ = Fit([]History{walk(steps...)}, p).AppendBinary(nil)
	require.NoError(t, p.UnmarshalBinary(b))
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
