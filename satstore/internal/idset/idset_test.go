package idset

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

func TestMain(m *testing.M) {
	options.Segment, options.Steps = 1000, 300 // so that runs have several segments
	m.Run()
}

// alike returns keys with common prefixes, which are rare among hashes.
func alike(n int) (key Key) {
	binary.BigEndian.PutUint64(key[:], uint64(n/3000))
	binary.BigEndian.PutUint64(key[8:], uint64(n)*0x9e3779b97f4a7c15)
	return key
}

const alikeKeys = 20_000

// A world is a set, and a map that it should equal.
type world struct {
	fs     *vfs.Mem
	x      *Set
	want   map[Key]uint64
	random *rand.Rand
	faulty bool // files may be left over
}

func newWorld(seed uint64) *world {
	fs := vfs.NewMem()
	x, _ := Open(fs, State{}) // there is nothing to read
	return &world{fs: fs, x: x, want: map[Key]uint64{}, random: rand.New(rand.NewPCG(seed, 7))}
}

func (w *world) change(n int) {
	for range w.random.IntN(n) {
		key := alike(w.random.IntN(alikeKeys))
		if _, found := w.want[key]; found && w.random.IntN(2) == 0 {
			w.x.Delete(key)
			delete(w.want, key)
		} else {
			w.want[key] = w.random.Uint64() % MaxValue
			w.x.Put(key, w.want[key])
		}
	}
}

func (w *world) compare(t *testing.T) {
	t.Helper()
	var keys []Key
	for n := 0; n < alikeKeys; n += 1 + w.random.IntN(60) {
		keys = append(keys, alike(n))
	}
	w.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	values, err := w.x.Find(keys)
	require.NoError(t, err)
	for i, key := range keys {
		want, there := w.want[key]
		if !there {
			want = None
		}
		if values[i] != want {
			t.Fatalf("key %x: %d instead of %d", key, values[i], want)
		}
	}
	got := map[Key]uint64{}
	require.NoError(t, w.x.All(func(key Key, value uint64) { got[key] = value }))
	require.Equal(t, w.want, got)
}

// reopen continues with the state of a checkpoint taken now, and requires that no other file is
// needed.
func (w *world) reopen(t *testing.T) {
	t.Helper()
	w.x.Freeze()
	require.NoError(t, w.x.Flush())
	st := w.x.State()
	w.x.Saved(st)
	names, err := w.fs.List()
	require.NoError(t, err)
	require.Subset(t, names, Names(st))
	size := int64(0)
	for _, name := range Names(st) {
		size += int64(len(w.fs.Data(name)))
	}
	require.Equal(t, size, w.x.Size())
	w.x.Close()
	names, err = w.fs.List()
	require.NoError(t, err)
	require.True(t, w.faulty || len(names) == len(Names(st)), "%q of %q", Names(st), names)
	w.x, err = Open(w.fs, st)
	require.NoError(t, err)
}

// mergeAll merges until nothing is left to merge.
func (w *world) mergeAll(t *testing.T) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = w.x.Step()
		require.NoError(t, err)
	}
}

// TestModel compares a set with a map, over many flushes, merges that are interrupted anywhere, and
// keys that are deleted and added again.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		w := newWorld(seed)
		for range 60 {
			switch w.random.IntN(10) {
			case 0:
				w.reopen(t)
			case 1:
				w.mergeAll(t)
			case 2, 3, 4:
				w.x.Freeze()
				if w.random.IntN(2) == 0 {
					w.change(200)
				}
				require.NoError(t, w.x.Flush())
			case 5, 6:
				_, err := w.x.Step()
				require.NoError(t, err)
			default:
				w.change(1500)
			}
			w.compare(t)
		}
		for key := range maps.Clone(w.want) { // until nothing is left, not even deletion marks
			w.x.Delete(key)
			delete(w.want, key)
		}
		w.reopen(t)
		w.mergeAll(t)
		w.reopen(t)
		w.compare(t)
		require.Less(t, len(w.x.State().Runs), 2)
	}
}

// TestFailedSteps makes each change of the disk fail in turn. The entries are still there, and the
// next attempt succeeds.
func TestFailedSteps(t *testing.T) {
	bad := errors.New("bad disk")
	failed := 0
	step := 1
	if testing.Short() {
		step = 3
	}
	for nth := 1; nth < 30; nth += step {
		w := newWorld(3)
		for range 3 {
			w.change(1500)
			w.reopen(t)
		}
		w.change(500)
		w.x.Freeze()
		w.fs.FailAt(w.fs.Steps()+nth, bad)
		for range 9 {
			_, err := w.x.Step()
			err = errors.Join(err, w.x.Flush())
			if err != nil {
				failed++
				require.ErrorIs(t, err, bad)
			}
			w.compare(t)
		}
		w.fs.FailAt(0, nil)
		w.faulty = true
		w.reopen(t)
		w.compare(t)
	}
	require.Greater(t, failed, 2)
}

// TestConcurrentLookUps looks up keys while runs are replaced.
func TestConcurrentLookUps(t *testing.T) {
	w := newWorld(4)
	w.change(4000)
	fixed := slices.Collect(maps.Keys(w.want))
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for range 40 {
				values, err := w.x.Find(fixed)
				require.NoError(t, err)
				for i, key := range fixed {
					if values[i] != w.want[key] {
						t.Errorf("%v is %d, not %d", key, values[i], w.want[key])
					}
				}
			}
		})
	}
	for n := range 20 {
		for i := range 500 {
			w.x.Put(KeyOf(string(rune(n*500+i))), 1)
		}
		w.x.Freeze()
		require.NoError(t, w.x.Flush())
		_, err := w.x.Step()
		require.NoError(t, err)
		w.x.Saved(w.x.State())
	}
	others.Wait()
	w.x.Close()
	_, err := w.x.Find(fixed)
	require.ErrorIs(t, err, extent.ErrClosed)
}

// A countingFS counts the bytes that are read.
type countingFS struct {
	vfs.FS
	mu   sync.Mutex
	read int64
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (f *countingFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return countingFile{file, f}, err
}

func (f countingFile) ReadAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	f.fs.read += int64(len(b))
	f.fs.mu.Unlock()
	return f.File.ReadAt(b, at)
}

func hashed(n int) Key { return KeyOf(string(binary.AppendVarint(nil, int64(n)))) }

// TestNewIDsReadNothing: look-ups of new ids read almost no blocks, and a batch of known ids reads
// each block once.
func TestNewIDsReadNothing(t *testing.T) {
	t.Parallel()
	fs := &countingFS{FS: vfs.NewMem()}
	x, err := Open(fs, State{})
	require.NoError(t, err)
	var known, unknown []Key
	for n := range 100_000 {
		known = append(known, hashed(n))
		x.Put(hashed(n), uint64(n))
	}
	for n := range 1000 {
		unknown = append(unknown, hashed(-n-1))
	}
	x.Freeze()
	require.NoError(t, x.Flush())
	fs.read = 0
	values, err := x.Find(unknown)
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]uint64{None}, 1000), values)
	require.LessOrEqual(t, fs.read, int64(10*options.Block), "at most one in 200 new ids reads a block")
	fs.read = 0
	values, err = x.Find(known)
	require.NoError(t, err)
	for n := range known {
		if values[n] != uint64(n) {
			t.Fatalf("%d is %d", n, values[n])
		}
	}
	require.Less(t, fs.read, int64(148*options.Block), "each block once")
}
