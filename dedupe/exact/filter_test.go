package exact

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilterNeverReportsKnownAsNew fills filters of all sizes far beyond their useful capacity.
func TestFilterNeverReportsKnownAsNew(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, memory := range []int64{0, lineBytes, 1000, 1 << 16} {
		f := newFilter(memory)
		require.LessOrEqual(t, int64(len(f))*lineBytes, max(memory, lineBytes))
		prints := make([]fingerprint, 20_000)
		for i := range prints {
			prints[i] = fingerprint(random.Uint64())
			f.addNew(prints[i])
		}
		prints = append(prints, 1, math.MaxUint64)
		for i, print := range prints {
			f.addNew(print)
			require.False(t, f.addNew(print), i)
		}
	}
}

// TestFilterErrors measures the rate of false positives, with eight bits per fingerprint and with
// sixteen.
func TestFilterErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, bits := range []int{8, 16} {
		const urls = 100_000
		f := newFilter(urls * int64(bits) / 8)
		for range urls {
			f.addNew(fingerprint(random.Uint64()))
		}
		unsure := 0
		const tries = 50_000
		lines := slices.Clone(f)
		for i := range tries {
			if i%100 == 0 {
				copy(f, lines) // undo the adds
			}
			if !f.addNew(fingerprint(random.Uint64())) {
				unsure++
			}
		}
		want := lineError(512 / float64(bits))
		require.InEpsilon(t, want, float64(unsure)/tries, 0.2, "%d bits", bits)
	}
}

// lineError is the probability that a line has all bits of a new fingerprint, if lines have mean
// others on average: the error of a Bloom filter, averaged over a Poisson distribution.
func lineError(mean float64) (sum float64) {
	chance := math.Exp(-mean)
	for n := range int(4 * mean) {
		clear := math.Pow(1-1.0/512, float64(functions*n))
		sum += chance * math.Pow(1-clear, functions)
		chance *= mean / float64(n+1)
	}
	return sum
}

func TestFilterMarksWhatIsNew(t *testing.T) {
	f := newFilter(1000)
	f.addNew(5)
	all := []sighting{
		newSighting(5, 1),
		newSighting(6, 2),
		newSighting(1<<60, 3),
	}
	require.EqualValues(t, 2, f.mark(all))
	require.False(t, all[0].isNew())
	require.True(t, all[1].isNew())
	require.True(t, all[2].isNew())
	require.Zero(t, f.mark(all))
}
