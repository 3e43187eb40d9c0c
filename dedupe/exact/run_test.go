package exact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeRunOf writes fingerprints, which must be sorted, to a run.
func writeRunOf(t testing.TB, d disk, number uint64, width int, prints []fingerprint) *run {
	t.Helper()
	w, err := createRun(d, number, width, int64(len(prints)))
	require.NoError(t, err)
	for _, f := range prints {
		w.add(f)
	}
	require.NoError(t, w.finish())
	return w.run
}

// randomPrints returns fingerprints in order, each once. With a mask for the first word, many have
// that one in common.
func randomPrints(random *rand.Rand, n, width int, mask uint64) []fingerprint {
	prints := make([]fingerprint, n)
	for i := range prints {
		prints[i][0] = random.Uint64() & mask
		if width == 16 {
			prints[i][1] = random.Uint64()
		}
	}
	slices.SortFunc(prints, fingerprint.compare)
	return slices.Compact(prints)
}

// TestDropKnownKeepsTheUnknown compares look-ups in runs of several blocks with a map. Some
// sightings are few, so that blocks are left out, and some are marked as new.
func TestDropKnownKeepsTheUnknown(t *testing.T) {
	for _, width := range []int{8, 16} {
		for _, mask := range []uint64{^uint64(0), 0x3ff << 54} {
			for _, size := range []int{1, 10, 9000} {
				name := fmt.Sprintf("width=%d/mask=%x/size=%d", width, mask, size)
				t.Run(name, func(t *testing.T) {
					testDropKnown(t, width, mask, size)
				})
			}
		}
	}
}

func testDropKnown(t *testing.T, width int, mask uint64, size int) {
	random := rand.New(rand.NewPCG(1, 0))
	prints := randomPrints(random, size, width, mask)
	r := writeRunOf(t, newMemDisk(), 1, width, prints)
	known := map[fingerprint]bool{}
	for _, f := range prints {
		known[f] = true
	}
	for _, n := range []int{1, 20, 5000} {
		asked := randomPrints(random, n/2, width, mask)
		for range n / 2 {
			asked = append(asked, prints[random.IntN(len(prints))])
		}
		asked = append(asked, prints[0], prints[len(prints)-1], fingerprint{}, fingerprint{^uint64(0)})
		slices.SortFunc(asked, fingerprint.compare)
		var all, want []sighting
		for i, f := range slices.Compact(asked) {
			s := newSighting(f, int64(i))
			if i%5 == 0 && !known[f] {
				s.setNew()
			}
			all = append(all, s)
			if !known[f] {
				want = append(want, s)
			}
		}
		var read int64
		got, err := r.dropKnown(all, &read)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
		require.LessOrEqual(t, read, r.fileSize())
	}
}

// TestMergedRunsHoldAll merges runs and sightings and reads what came out as Open does.
func TestMergedRunsHoldAll(t *testing.T) {
	for _, width := range []int{8, 16} {
		random := rand.New(rand.NewPCG(2, 0))
		all := randomPrints(random, 20_000, width, ^uint64(0))
		parts := make([][]fingerprint, 4)
		for _, f := range all {
			part := min(random.IntN(9), 3)
			parts[part] = append(parts[part], f)
		}
		d := newMemDisk()
		var runs []*run
		for i, part := range parts[1:] {
			runs = append(runs, writeRunOf(t, d, uint64(i+1), width, part))
		}
		var news []sighting
		for _, f := range parts[0] {
			news = append(news, newSighting(f, 0))
		}
		w, err := createRun(d, 9, width, int64(len(all)))
		require.NoError(t, err)
		var read int64
		require.NoError(t, w.mergeRuns(runs, news, &read))
		require.NoError(t, w.finish())
		var got []fingerprint
		opened, err := openRun(d, 9, width, func(f fingerprint) { got = append(got, f) })
		require.NoError(t, err)
		require.Equal(t, all, got)
		require.Equal(t, w.run.firsts, opened.firsts)
	}
}
