package stage

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClock(t *testing.T) { synctest.Test(t, clockTest) }

func clockTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "began")
	c, err := OpenClock(file, 10)
	require.NoError(t, err)
	require.Equal(t, c.Began.Add(50*time.Second), c.At(c.Began.Add(5*time.Second)))
	require.True(t, c.At(time.Time{}).IsZero())
	require.Equal(t, 6*time.Second, c.Until(c.Now().Add(time.Minute)))
	for _, pace := range []float64{10, 0} {
		again, err := OpenClock(file, pace)
		require.NoError(t, err)
		require.True(t, c.Began.Equal(again.Began))
		require.EqualValues(t, 10, again.Pace)
	}
	_, err = OpenClock(file, 11)
	require.ErrorContains(t, err, "-pace 10")
	for _, text := range []string{"yesterday", "2026-11-01T00:00:00Z 0", "2026-11-01T00:00:00Z NaN"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err = OpenClock(file, 0)
		require.ErrorContains(t, err, file, text)
	}
	real := Clock{Pace: 1}
	require.Equal(t, c.Began, real.At(c.Began))
	fast := Clock{Began: c.Began, Pace: MaxPace}
	require.False(t, fast.At(c.Began.Add(48*time.Hour)).Before(fast.At(c.Began.Add(time.Hour))),
		"the clock never goes back")
}
