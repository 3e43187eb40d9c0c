package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRatiosAreOfTheSameRound has a round in which everything took ten times as long.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	var r Results
	for _, load := range []float64{1, 10, 2} {
		r.Add("reference", 3*load, 1)
		r.Add("subject", 6*load, load)
	}
	require.Equal(t, []float64{12, 2}, r.Medians("subject"))
	require.Equal(t, 2.0, r.Ratio("subject", "reference", 0))
	require.Equal(t, 2.0, r.Ratio("subject", "reference", 1))
}

func TestMedianKeepsTheOrder(t *testing.T) {
	values := []float64{3, 1, 2}
	require.Equal(t, 2.0, Median(values))
	require.Equal(t, []float64{3, 1, 2}, values)
}
