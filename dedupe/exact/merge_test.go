package exact

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A meteredFS counts the bytes that are read and written.
type meteredFS struct {
	*vfs.Mem
	bytes int
}

type meteredFile struct {
	vfs.File
	fs *meteredFS
}

func (fs *meteredFS) Create(name string) (vfs.File, error) {
	f, err := fs.Mem.Create(name)
	return &meteredFile{f, fs}, err
}

func (f *meteredFile) ReadAt(b []byte, at int64) (int, error) {
	f.fs.bytes += len(b)
	return f.File.ReadAt(b, at)
}

func (f *meteredFile) WriteAt(b []byte, at int64) (int, error) {
	f.fs.bytes += len(b)
	return f.File.WriteAt(b, at)
}

// take returns the bytes since the last call.
func (fs *meteredFS) take() (n int) {
	n, fs.bytes = fs.bytes, 0
	return n
}

// stallSet returns a Set with an index that has far more pages than one call may touch.
func stallSet(t *testing.T) (*Set, *meteredFS) {
	fs := &meteredFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, Options{Memory: 400 << 10})
	for i := range 60_000 {
		add(t, s, page(i))
	}
	require.Greater(t, s.index.pages(), int64(100))
	fs.take()
	return s, fs
}

// mostBytes is what a call may read and write under the lock: one large read, and some pages and
// entries.
const mostBytes = durable.WriteSize + 32*pageSize

// TestNoCallWaitsForAMerge counts the bytes that are read and written in each call of Defer, which
// do the merges among them, and of the calls of Add between.
func TestNoCallWaitsForAMerge(t *testing.T) {
	s, fs := stallSet(t)
	random := rand.New(rand.NewPCG(1, 0))
	most, waited := 0, s.Stats().Merges
	next := 60_000
	for i := range 60_000 {
		url := page(random.IntN(60_000))
		if random.IntN(2) == 0 {
			url = page(next)
			next++
		}
		if i%10 == 0 {
			_, err := s.Add(url)
			require.NoError(t, err)
		} else {
			require.NoError(t, s.Defer(url, nil))
		}
		most = max(most, fs.take())
	}
	require.Greater(t, s.Stats().Merges, waited+3)
	require.Less(t, most, mostBytes)
	require.Greater(t, int(s.index.fileSize()), mostBytes*3/2, "a whole merge is more")
}

// TestMergeLetsOthersIn does the same for what happens in Merge and Close while nobody else can get
// the lock.
func TestMergeLetsOthersIn(t *testing.T) {
	for _, merge := range []func(*Set) error{(*Set).Merge, (*Set).Close} {
		s, fs := stallSet(t)
		for i := 59_000; len(s.deferred.sightings)+s.deferred.reserve() < cap(s.deferred.sightings) || i < 60_100; i++ {
			require.NoError(t, s.Defer(page(i), nil))
		}
		fs.take()
		most, pauses := 0, 0
		s.between = func() {
			most = max(most, fs.take())
			pauses++
		}
		require.NoError(t, merge(s))
		require.Greater(t, pauses, 20)
		require.Less(t, most, mostBytes)
	}
}

// TestCallsBetweenSteps plays all kinds of calls between any two steps of a merge. Each new URL must
// become one entry, by Add or by the merge.
func TestCallsBetweenSteps(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
		s.segmentSize = 5000
		if seed%3 == 0 { // the filter rules nothing out
			s.filter = newFilter(1)
		}
		met, told := map[string]bool{}, map[string]bool{}
		url := func() string {
			url := page(random.IntN(9000))
			met[url] = true
			return url
		}
		adds := func(n int) {
			for range n {
				url := url()
				added, err := s.Add(url)
				require.NoError(t, err)
				require.False(t, added && told[url], "%s is new twice", url)
				told[url] = told[url] || added
			}
		}
		s.between = func() {
			adds(random.IntN(4))
			if random.IntN(20) == 0 {
				require.NoError(t, s.Sync())
				require.NoError(t, s.Trim(0))
			}
			if random.IntN(3) == 0 {
				require.NoError(t, s.Defer(url(), nil))
			}
		}
		for range 8 {
			adds(random.IntN(300))
			for range random.IntN(1500) {
				require.NoError(t, s.Defer(url(), nil))
				adds(random.IntN(2))
			}
			require.NoError(t, s.Merge())
			if m := s.deferred.merge; m != nil {
				require.LessOrEqual(t, int64(len(m.added)), 2*m.steps)
			}
		}
		s.between = nil
		require.NoError(t, s.Merge())
		require.Zero(t, s.Stats().Deferred)
		got := entriesFrom(t, s, 0)
		require.Len(t, got, len(met), "seed %d", seed)
		slices.Sort(got)
		require.Len(t, slices.Compact(got), len(met), "seed %d", seed)
	}
}
