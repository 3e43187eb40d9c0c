package revisit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPowersAndLogarithms(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 20_000 {
		x := math.Exp2(80 * (random.Float64() - 0.5))
		require.InDelta(t, math.Log2(x), log2(x), 1e-14, x)
		y := 80 * (random.Float64() - 0.5)
		require.InEpsilon(t, math.Exp2(y), exp2(y), 2e-15, y)
	}
	for n := -1000; n <= 1000; n++ {
		require.Equal(t, math.Ldexp(1, n), exp2(float64(n)), n)
		require.InDelta(t, float64(n), log2(math.Ldexp(1, n)), 1e-12, n)
	}
}

func BenchmarkPowers(b *testing.B) {
	for name, f := range map[string]func(float64) float64{
		"log2": log2, "math.Log2": math.Log2, "exp2": exp2, "math.Exp2": math.Exp2,
	} {
		b.Run("of="+name, func(b *testing.B) {
			x := 0.0
			for b.Loop() {
				x = f(3 + x*1e-9)
			}
		})
	}
}
