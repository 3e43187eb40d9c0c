package dedupe

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARotatingFilterRemembersCapacityCalls looks at each call for the URL that was added Capacity
// calls before. Each generation has room for many more URLs than the shards report at a time, so what
// they have not reported yet must not make it shorter.
func TestARotatingFilterRemembersCapacityCalls(t *testing.T) {
	for _, o := range []Options{
		{Capacity: 1 << 18, Generations: 1},
		{Capacity: 1 << 18, Generations: 2},
		{Capacity: 100_003, Generations: 3, Recent: 5000},
	} {
		f := New(o)
		for i := range 3*o.Capacity + o.Capacity/2 {
			f.Add(strconv.Itoa(i))
			if i < o.Capacity {
				continue
			}
			hash := f.key.Sum64(strconv.Itoa(i - o.Capacity))
			s := &f.shards[hash>>f.shift]
			s.catchUp()
			found := s.find(hash) > 0 || s.recent != nil && s.recent.Contains(hash)
			require.True(t, found, "%+v forgot at URL %d", o, i)
		}
		require.LessOrEqual(t, f.Stats().Error, 1.005*DefaultRate) // shards fill unevenly
	}
}

// TestARotatingFilterKeepsItsRate fills generations with URLs of which many are met again.
func TestARotatingFilterKeepsItsRate(t *testing.T) {
	const capacity = 1 << 17
	f := New(Options{Capacity: capacity, Generations: 2})
	for i := range 5 * capacity {
		f.Add(strconv.Itoa(i - i%3*capacity/3))
		if i%1000 == 0 {
			require.LessOrEqual(t, f.Stats().Error, 1.005*DefaultRate) // shards fill unevenly
		}
	}
}
