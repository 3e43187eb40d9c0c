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

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

func TestMain(m *testing.M) {
	segmentEntries = 1000 // so that runs have several segments
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
	return &world{fs: fs, x: New(fs), want: map[Key]uint64{}, random: rand.New(rand.NewPCG(seed, 7))}
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
	d := disk.Decoder{B: st.Append(nil)}
	require.Equal(t, st, TakeState(&d))
	require.False(t, d.Bad)
	w.x.Saved(st)
	names, err := w.fs.List()
	require.NoError(t, err)
	require.Subset(t, names, st.Names())
	require.True(t, w.faulty || len(names) == len(st.Names()), "%q of %q", st.Names(), names)
	size := int64(0)
	for _, name := range st.Names() {
		size += int64(len(w.fs.Data(name)))
	}
	require.Equal(t, size, w.x.Size())
	require.NoError(t, w.x.Close())
	w.x, err = Open(w.fs, st)
	require.NoError(t, err)
}

// mergeAll merges until nothing is left to merge. Then each run is more than twice as long as the
// next.
func (w *world) mergeAll(t *testing.T) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = w.x.Step(nil)
		require.NoError(t, err)
	}
	for i := 1; i < len(w.x.runs); i++ {
		require.Greater(t, w.x.runs[i-1].count(), 2*w.x.runs[i].count())
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
				_, err := w.x.Step(nil)
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

// TestStepStops: a Step that is stopped changes nothing.
func TestStepStops(t *testing.T) {
	w := newWorld(1)
	for range 4 {
		w.change(4000)
		w.reopen(t)
	}
	stop := make(chan struct{})
	close(stop)
	before, err := w.fs.List()
	require.NoError(t, err)
	more, err := w.x.Step(stop)
	require.NoError(t, err)
	require.False(t, more)
	after, err := w.fs.List()
	require.NoError(t, err)
	require.Equal(t, before, after)
	w.compare(t)
	w.mergeAll(t)
	w.compare(t)
}

// TestFilesAreDamaged: for each flipped bit of a file, a look-up is correct or names the damaged
// file.
func TestFilesAreDamaged(t *testing.T) {
	w := newWorld(2)
	for range 3 {
		w.change(1500)
		w.reopen(t)
	}
	st := w.x.State()
	keys := slices.Collect(maps.Keys(w.want))
	noticed := 0
	for range 300 {
		fs := w.fs.Clone()
		name := st.Names()[w.random.IntN(len(st.Names()))]
		fs.Flip(name, int64(w.random.IntN(len(fs.Data(name)))), w.random.IntN(8))
		x, err := Open(fs, st)
		var values []uint64
		if err == nil {
			values, err = x.Find(keys)
		}
		if err != nil {
			var where *durable.CorruptError
			require.ErrorAs(t, err, &where)
			require.Equal(t, name, where.File)
			noticed++
			continue
		}
		for i, key := range keys {
			require.Equal(t, w.want[key], values[i])
		}
	}
	require.Greater(t, noticed, 200)
}

// TestFailedSteps makes each change of the disk fail in turn. The entries are still there, and the
// next attempt succeeds.
func TestFailedSteps(t *testing.T) {
	bad := errors.New("bad disk")
	failed := 0
	for nth := 1; nth < 30; nth++ {
		w := newWorld(3)
		for range 3 {
			w.change(1500)
			w.reopen(t)
		}
		w.change(500)
		w.x.Freeze()
		w.fs.FailAt(w.fs.Steps()+nth, bad)
		for range 9 {
			_, err := w.x.Step(nil)
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
	require.Greater(t, failed, 10)
}

// TestConcurrentLookUps looks up keys while runs are replaced.
func TestConcurrentLookUps(t *testing.T) {
	w := newWorld(4)
	w.change(4000)
	fixed := slices.Collect(maps.Keys(w.want))
	var others sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		others.Go(func() {
			for !isClosed(done) {
				values, err := w.x.Find(fixed)
				require.NoError(t, err)
				for i, key := range fixed {
					require.Equal(t, w.want[key], values[i])
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
		_, err := w.x.Step(nil)
		require.NoError(t, err)
		w.x.Saved(w.x.State())
	}
	close(done)
	others.Wait()
	require.NoError(t, w.x.Close())
	_, err := w.x.Find(fixed)
	require.ErrorIs(t, err, disk.ErrClosed)
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
	x := New(fs)
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
	values, err := x.Find(unknown)
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]uint64{None}, 1000), values)
	require.LessOrEqual(t, fs.read, int64(10*blockSize), "at most one in 200 new ids reads a block")
	fs.read = 0
	values, err = x.Find(known)
	require.NoError(t, err)
	for n := range known {
		require.EqualValues(t, n, values[n])
	}
	require.Less(t, fs.read, int64(148*blockSize), "each block once")
}

func TestFilter(t *testing.T) {
	const keys = 50_000
	for bits, most := range map[int64]int{smallBits: keys / 600, largeBits: keys / 200} {
		f, wrong := newFilter(keys, bits), 0
		for n := range keys {
			f.add(hashed(n))
		}
		for n := range keys {
			require.True(t, f.has(hashed(n)))
			if f.has(hashed(-n - 1)) {
				wrong++
			}
		}
		t.Logf("%d bits: 1 in %d", bits, keys/max(wrong, 1))
		require.LessOrEqual(t, wrong, most)
	}
}

// FuzzSegment: a file is refused, or searching it and reading it through agree.
func FuzzSegment(f *testing.F) {
	fs := vfs.NewMem()
	w, err := createSegment(fs, 1, 2000)
	require.NoError(f, err)
	for i := range 1500 {
		w.add(alike(i*3000), uint64(i))
	}
	_, err = w.finish()
	require.NoError(f, err)
	f.Add(fs.Data(FileName(1)), uint16(0), byte(0))
	f.Add(fs.Data(FileName(1)), uint16(9), byte(1))
	f.Fuzz(func(t *testing.T, in []byte, at uint16, flip byte) {
		if int(at) < len(in) {
			in = slices.Clone(in)
			in[at] ^= flip
		}
		fs := vfs.NewMem()
		fs.Put(FileName(1), in)
		x, err := Open(fs, State{File: 1, Runs: []RunState{{Files: []uint64{1}}}})
		if err != nil {
			require.ErrorIs(t, err, durable.ErrCorrupt)
			return
		}
		all := map[Key]uint64{}
		if err := x.All(func(key Key, value uint64) { all[key] = value }); err != nil {
			require.ErrorIs(t, err, durable.ErrCorrupt)
			return
		}
		keys := slices.Collect(maps.Keys(all))
		values, err := x.Find(keys)
		require.NoError(t, err)
		for i, key := range keys {
			require.Equal(t, all[key], values[i])
		}
	})
}

// FuzzState: encoding a decoded state gives the same bytes, and it names no file twice.
func FuzzState(f *testing.F) {
	st := State{File: 9, Runs: []RunState{{Files: []uint64{4, 7}}, {}, {Files: []uint64{9}, Merges: 2}}}
	f.Add(st.Append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := disk.Decoder{B: in}
		st := TakeState(&d)
		if d.Bad {
			return
		}
		again := disk.Decoder{B: st.Append(nil)}
		require.Equal(t, st, TakeState(&again))
		names := st.Names()
		slices.Sort(names)
		require.Equal(t, len(names), len(slices.Compact(names)))
	})
}
