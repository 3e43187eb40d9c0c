package dedupe_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

// TestLayersFollowTheFormula compares bits and errors with the doc comment of Stats.
func TestLayersFollowTheFormula(t *testing.T) {
	const capacity = 8000
	f := dedupe.New(dedupe.Options{Capacity: capacity, Recent: -1})
	for _, tt := range []struct {
		urls, layers int
		bits         float64 // for each URL
	}{
		{capacity, 1, 14.5},
		{2 * capacity, 2, (14.5 + 22.1) / 2},
		{4 * capacity, 3, (14.5 + 22.1 + 2*23.5) / 4},
		{8 * capacity, 4, (14.5 + 22.1 + 2*23.5 + 4*24.9) / 8},
	} {
		for i := 0; f.Stats().URLs < tt.urls*999/1000; i++ { // shards start layers with some delay
			f.Add(fmt.Sprint(tt.urls, "/", i))
		}
		s := f.Stats()
		require.Equal(t, tt.layers, s.Layers)
		require.InEpsilon(t, tt.bits*float64(tt.urls), s.Bits, 0.03, "%d layers", tt.layers)
		require.LessOrEqual(t, s.Error, dedupe.DefaultRate)
	}
}

// TestMaxBytesCountsTheList grows filters with and without a list until they are saturated.
func TestMaxBytesCountsTheList(t *testing.T) {
	const capacity, list, bound = 1000, 500, 100_000
	layers := map[int]int{}
	for _, recent := range []int{0, list} {
		f := dedupe.New(dedupe.Options{Capacity: capacity, Recent: recent, MaxBytes: bound})
		for i := range 100 * capacity {
			f.Add(strconv.Itoa(i))
		}
		s := f.Stats()
		require.True(t, s.Saturated)
		require.Equal(t, recent, s.Recent)
		require.LessOrEqual(t, s.Bytes, uint64(bound))
		layers[recent] = s.Layers
	}
	require.Greater(t, layers[0], layers[list])
}

// TestMaxBytesIsExact grows a filter that lacks one byte for another layer, and one that does not, also if
// it is saved and read on the way.
func TestMaxBytesIsExact(t *testing.T) {
	const capacity = 100
	for _, saved := range []int{-1, 0, capacity / 2, capacity * 5 / 2} { // URLs before that
		grown := func(bound int64) dedupe.Stats {
			o := dedupe.Options{Capacity: capacity, MaxBytes: bound}
			f := dedupe.New(o)
			for i := range capacity * 3 {
				if i == saved {
					f = reloaded(t, f, o)
				}
				f.Add(strconv.Itoa(i))
			}
			return f.Stats()
		}
		whole := grown(0)
		require.Equal(t, 3, whole.Layers)
		require.Equal(t, whole.Bytes, grown(int64(whole.Bytes)).Bytes, saved)
		require.Equal(t, 2, grown(int64(whole.Bytes)-1).Layers, saved)
	}
}

// TestRotatingFilterRemembersCapacityURLs checks both halves of the promise: a URL added within the
// last Capacity URLs is known, and a URL that was not added for much longer is forgotten.
func TestRotatingFilterRemembersCapacityURLs(t *testing.T) {
	const capacity, generations = 5000, 4
	f := dedupe.New(dedupe.Options{
		Capacity: capacity, Rate: 1e-9, Recent: 10, Generations: generations,
	})
	const home = "https://a.test/"
	require.True(t, f.Add(home))
	var size uint64
	for i := range 20 * capacity {
		require.True(t, f.Add(strconv.Itoa(i)))
		if i >= capacity {
			// A URL that is added again in time stays known.
			if i%(capacity/2) == 0 {
				require.False(t, f.Add(home))
			}
			old := i - capacity*9/10 // a repeated URL takes space, too
			if i%1000 == 0 {
				require.False(t, f.Add(strconv.Itoa(old)), old)
			}
		}
		if i == 10*capacity {
			size = f.Stats().Bits
		}
	}
	require.True(t, f.Add("0"))
	require.True(t, f.Add(strconv.Itoa(20*capacity-capacity*3/2+1)))
	require.Equal(t, size, f.Stats().Bits)
	require.Equal(t, generations+1, f.Stats().Layers)
	require.False(t, f.Stats().Saturated)
}
