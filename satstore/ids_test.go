package satstore

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// alike returns fingerprints of which many have the same beginning, which hashes hardly ever have.
func alike(n int) (key fingerprint) {
	binary.BigEndian.PutUint64(key[:], uint64(n/3000))
	binary.BigEndian.PutUint64(key[8:], uint64(n)*0x9e3779b97f4a7c15)
	return key
}

// TestIDs compares the index with a map, over many flushes, with ids that are deleted and come
// back.
func TestIDs(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	random := rand.New(rand.NewPCG(7, 7))
	x := &ids{fs: fs}
	want := map[fingerprint]uint64{}
	for range 12 {
		for range random.IntN(500) {
			key := alike(random.IntN(20_000))
			if _, found := want[key]; found && random.IntN(2) == 0 {
				x.set(key, want[key]|deletedBit)
				delete(want, key)
			} else {
				want[key] = random.Uint64() &^ deletedBit
				x.set(key, want[key])
			}
		}
		compareIDs(t, want, x)
		runs, err := x.flush()
		require.NoError(t, err)
		for _, name := range x.adopt(runs) {
			require.NoError(t, fs.Remove(name))
		}
		for i := 1; i < len(x.runs); i++ {
			require.Greater(t, x.runs[i-1].count, 2*x.runs[i].count)
		}
		compareIDs(t, want, x)
	}
	reopened := &ids{fs: fs}
	for _, r := range x.runs {
		again, err := openRun(fs, r.number)
		require.NoError(t, err)
		reopened.runs = append(reopened.runs, again)
	}
	compareIDs(t, want, reopened)
	require.NoError(t, reopened.close())
}

func compareIDs(t *testing.T, want map[fingerprint]uint64, x *ids) {
	t.Helper()
	for n := 0; n < 20_000; n += 31 {
		seq, found, err := x.seq(alike(n))
		require.NoError(t, err)
		wanted, there := want[alike(n)]
		if found != there || found && seq != wanted {
			t.Fatalf("id %d: %d, %v instead of %d, %v", n, seq, found, wanted, there)
		}
	}
	got := map[fingerprint]uint64{}
	require.NoError(t, x.each(func(key fingerprint, seq uint64) { got[key] = seq }))
	require.Equal(t, want, got)
}

// TestNewIDsReadNothing: hardly any block is read for ids that are new, and one for many of a batch
// that are known.
func TestNewIDsReadNothing(t *testing.T) {
	t.Parallel()
	disk := &meter{FS: vfs.NewMem()}
	w, err := createRun(disk, 1, 100_000)
	require.NoError(t, err)
	var known []fingerprint
	for n := range 100_000 {
		known = append(known, fingerprintOf(binary.AppendVarint(nil, int64(n))))
	}
	slices.SortFunc(known, func(a, b fingerprint) int { return bytes.Compare(a[:], b[:]) })
	for n, key := range known {
		w.add(key, uint64(n))
	}
	require.NoError(t, w.finish(false))
	r := w.run
	for n := range 1000 {
		_, found, err := r.find(fingerprintOf(binary.AppendVarint(nil, int64(-n-1))))
		require.NoError(t, err)
		require.False(t, found)
	}
	require.Less(t, disk.read.Load(), int64(40*runBlock), "one in 60 new ids reads a block")
	before := disk.read.Load()
	for _, key := range known {
		_, found, err := r.find(key)
		require.NoError(t, err)
		require.True(t, found)
	}
	require.Less(t, disk.read.Load()-before, int64(148*runBlock), "each block once")
}

func TestFilter(t *testing.T) {
	const keys = 20_000
	f := newFilter(keys)
	for n := range keys {
		f.add(fingerprintOf(binary.AppendVarint(nil, int64(n))))
	}
	wrong := 0
	for n := range keys {
		require.True(t, f.has(fingerprintOf(binary.AppendVarint(nil, int64(n)))))
		if f.has(fingerprintOf(binary.AppendVarint(nil, int64(-n-1)))) {
			wrong++
		}
	}
	require.Less(t, wrong, keys/50)
}
