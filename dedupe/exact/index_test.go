package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// indexOf returns the result of a sweep that merges sorted fingerprints with an old index.
func indexOf(t testing.TB, fs vfs.FS, number uint64, old *index, prints []fingerprint) *index {
	t.Helper()
	table := newTable(int64(8 * (2*len(prints) + 2*tableSlack)))
	for _, f := range prints {
		table.add(f)
	}
	var read int64
	w, err := newSweep(fs, number, old, table, &read)
	require.NoError(t, err)
	for !w.done {
		require.NoError(t, w.step(1))
	}
	require.Len(t, w.firsts, int(w.pages()))
	require.Equal(t, w.fileSize(), w.to.End())
	return w.index
}

// TestIndexHasWhatWasSwept looks up fingerprints in indexes of several pages, one by one and in
// batches, and compares with a sorted list.
func TestIndexHasWhatWasSwept(t *testing.T) {
	for _, mask := range []uint64{^uint64(0), 0x3ffff << 46, 0x3ffff} {
		for _, size := range []int{1, 10, 3000} {
			name := fmt.Sprintf("mask=%x/size=%d", mask, size)
			t.Run(name, func(t *testing.T) { testIndex(t, mask|1, size) })
		}
	}
}

func testIndex(t *testing.T, mask uint64, size int) {
	random := rand.New(rand.NewPCG(1, 0))
	prints := randomPrints(random, size, mask)
	fs := newFaultyFS()
	x := indexOf(t, fs, 1, &index{}, prints)
	for n := range 300 {
		f := prints[random.IntN(len(prints))]
		if n%2 == 0 {
			f = fingerprint(random.Uint64() & mask)
		}
		_, known := slices.BinarySearch(prints, f)
		before := fs.reads.Load()
		found, err := x.has(f)
		require.NoError(t, err)
		require.Equal(t, known, found)
		require.LessOrEqual(t, fs.reads.Load()-before, int64(1))
	}
	for _, n := range []int{1, 20, 5000} {
		asked := randomPrints(random, n/2, mask)
		for range n / 2 {
			asked = append(asked, prints[random.IntN(len(prints))])
		}
		asked = append(asked, prints[0], prints[len(prints)-1], 1, math.MaxUint64)
		var all, want []sighting
		for i, f := range slices.Compact(sortedPrints(asked)) {
			s := newSighting(f, int64(i))
			_, known := slices.BinarySearch(prints, f)
			if i%5 == 0 && !known {
				s.setNew()
			}
			all = append(all, s)
			if !known {
				want = append(want, s)
			}
		}
		var read int64
		j := join{indexReader: newIndexReader(x, 1, &read)}
		j.expect(int64(n))
		var got []sighting
		for _, s := range all {
			known := false
			if !s.isNew() {
				var err error
				known, err = j.has(s.print())
				require.NoError(t, err)
			}
			if !known {
				got = append(got, s)
			}
		}
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
		require.LessOrEqual(t, read, x.fileSize())
	}
}

// TestSweepsKeepAll sweeps repeatedly, and reads each result as Open does.
func TestSweepsKeepAll(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	all := randomPrints(random, 20_000, ^uint64(0))
	parts := make([][]fingerprint, 5)
	for _, f := range all {
		part := min(random.IntN(9), 4)
		parts[part] = append(parts[part], f)
	}
	parts[2] = nil // nothing new
	fs := vfs.NewMem()
	x := &index{}
	var want []fingerprint
	for i, part := range parts {
		x = indexOf(t, fs, uint64(i+1), x, part)
		want = sortedPrints(append(want, part...))
		var got []fingerprint
		opened, err := openIndex(fs, x.number, func(f fingerprint) { got = append(got, f) })
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, x.firsts, opened.firsts)
		require.Equal(t, x.count, opened.count)
	}
}

// TestFindIsExact compares find with the standard library's search, including indexes where the
// guess is always wrong.
func TestFindIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 0))
	for _, pages := range []int{0, 1, 2, 3, 100, 5000} {
		for _, mask := range []uint64{^uint64(0), 0xffff << 48, 0xffff} {
			x := &index{firsts: randomPrints(random, pages, mask|1)}
			for range 500 {
				f := fingerprint(random.Uint64() & mask)
				if pages > 0 && random.IntN(2) == 0 {
					f = x.firsts[random.IntN(len(x.firsts))]
				}
				at, found := slices.BinarySearch(x.firsts, f)
				if !found {
					at--
				}
				require.EqualValues(t, at, x.find(f))
			}
		}
	}
}
