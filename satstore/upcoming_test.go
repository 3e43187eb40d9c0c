package satstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/satstore"
)

// TestUpcoming: near counts are exact, far ones approximate, and overdue records count for any
// time.
func TestUpcoming(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	s, err := satstore.Open(t.TempDir(), satstore.Options{Unit: time.Minute, Start: start})
	require.NoError(t, err)
	for n := range 1000 {
		added, err := s.Add(fmt.Sprint(n), start.Add(time.Duration(n)*time.Hour), nil)
		require.NoError(t, err)
		require.True(t, added)
	}
	for range 10 {
		_, err := s.Add(fmt.Sprint("over", s.Stats().Records), start.Add(-time.Hour), nil)
		require.NoError(t, err)
	}
	counts := s.Upcoming(start.Add(-time.Minute), start.Add(5*time.Hour), start.Add(500*time.Hour),
		start.Add(5000*time.Hour))
	require.EqualValues(t, 11, counts[0])
	require.InDelta(t, 16, counts[1], 2)
	require.InDelta(t, 511, counts[2], 60)
	require.EqualValues(t, 1010, counts[3])
	require.NoError(t, s.Close())
	require.Equal(t, counts, s.Upcoming(start.Add(-time.Minute), start.Add(5*time.Hour),
		start.Add(500*time.Hour), start.Add(5000*time.Hour)), "even after Close")
}
