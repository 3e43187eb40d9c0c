package exact

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

func TestAddAnswersImmediately(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	add(t, s, "b", "a", "")
	for _, url := range []string{"a", "b", ""} {
		added, err := s.Add(url)
		require.NoError(t, err)
		require.False(t, added, url)
	}
	require.Equal(t, []string{"b", "a", ""}, entriesFrom(t, s, 0))
	require.NoError(t, s.Sync())
	require.NoError(t, s.Close())
	for _, err := range []error{s.Defer("d", nil), s.Merge(), s.Sync(), s.Trim(1), s.Close()} {
		require.ErrorIs(t, err, ErrClosed)
	}
	_, err := s.Add("d")
	require.ErrorIs(t, err, ErrClosed)
	for _, err := range s.Entries(0) {
		require.ErrorIs(t, err, ErrClosed)
	}
}

// TestAddDoesNotAllocate adds new URLs, and known ones that are looked up on disk.
func TestAddDoesNotAllocate(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Memory: MinMemory})
	require.NoError(t, err)
	urls := make([]string, 60_000)
	for i := range urls {
		urls[i] = page(i)
	}
	next := 0
	add := func() {
		if added, err := s.Add(urls[next]); !added || err != nil {
			t.Fatal(added, err)
		}
		next++
	}
	for range 50_000 {
		add()
	}
	require.Zero(t, testing.AllocsPerRun(5000, add))
	pages, old := s.stats.Pages, 0
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		if added, err := s.Add(urls[old]); added || err != nil {
			t.Fatal(added, err)
		}
		old += 7
	}))
	require.Positive(t, s.stats.Pages-pages)
	require.NoError(t, s.Close())
}

// TestAddReadsAtMostOnePage counts disk reads: none if the filter or the list has the answer, and
// otherwise one.
func TestAddReadsAtMostOnePage(t *testing.T) {
	fs := newFaultyFS()
	s := mustOpen(t, fs, Options{Memory: 100 << 10})
	random := rand.New(rand.NewPCG(1, 0))
	known := 0
	for n := range 20_000 {
		i := random.IntN(n/2 + 10)
		pages, reads, sweeps := s.stats.Pages, fs.reads.Load(), s.stats.Sweeps
		sweeping := s.sweep != nil
		added, err := s.Add(page(i))
		require.NoError(t, err)
		if added {
			known++
		}
		require.LessOrEqual(t, s.stats.Pages-pages, int64(1))
		if !sweeping && s.sweep == nil && s.stats.Sweeps == sweeps {
			require.Equal(t, s.stats.Pages-pages, fs.reads.Load()-reads)
		}
	}
	stats := s.Stats()
	require.Greater(t, s.index.pages(), int64(5))
	require.Greater(t, stats.Pages, int64(5000))
	require.Greater(t, stats.Recent, int64(500))
	require.Greater(t, stats.New, int64(1000))
	require.EqualValues(t, known, stats.URLs)
}

// TestModel compares Sets of little memory with a map. At random, they are closed, killed, merged,
// trimmed and read, and some URLs are deferred.
func TestModel(t *testing.T) {
	for _, memory := range []int64{tiny, small} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("memory=%d/seed=%d", memory, seed), func(t *testing.T) {
				testModel(t, Options{Memory: memory}, rand.New(rand.NewPCG(seed, 0)))
			})
		}
	}
}

func testModel(t *testing.T, o Options, random *rand.Rand) {
	fs := vfs.NewMem()
	reopen := func() *Set {
		s := mustOpen(t, fs, o)
		s.segmentSize = 10_000
		return s
	}
	s := reopen()
	met := map[string]bool{}
	trimmed := 0
	for i := range 5000 {
		url := page(random.IntN(i/2 + 100))
		if random.IntN(4) == 0 {
			put(t, s, url)
			met[url] = true
		} else if added, err := s.Add(url); err != nil || added && met[url] && s.Stats().Deferred == 0 ||
			!added && !met[url] {
			t.Fatal(url, added, err)
		}
		met[url] = true
		switch random.IntN(300) {
		case 0:
			require.NoError(t, s.Close())
			s = reopen()
		case 1:
			require.NoError(t, s.Merge()) // deferred URLs would not survive
			kill(t, s)
			s = reopen()
		case 2:
			trimmed = max(trimmed, random.IntN(int(s.Stats().URLs)+1))
			require.NoError(t, s.Trim(uint64(trimmed)))
		case 3:
			require.NoError(t, s.Merge())
			from := trimmed + random.IntN(len(met)-trimmed)
			require.Len(t, entriesFrom(t, s, from), len(met)-from)
		}
	}
	require.NoError(t, s.Merge())
	require.EqualValues(t, len(met), s.Stats().URLs)
	left := entriesFrom(t, s, trimmed)
	require.Len(t, left, len(met)-trimmed)
	slices.Sort(left)
	require.Equal(t, left, slices.Compact(slices.Clone(left)), "each URL once")
	for _, url := range left {
		require.True(t, met[url])
	}
	require.Greater(t, s.Stats().DiskSize, s.index.fileSize())
}

// TestLessMemoryThanBefore opens a Set whose log has far more entries than the new tables.
func TestLessMemoryThanBefore(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: small})
	s.segmentSize = 4900
	for i := range 200 {
		add(t, s, page(i))
	}
	require.NoError(t, s.Trim(150))
	for range 3 {
		kill(t, s)
		s = mustOpen(t, fs, Options{Memory: tiny})
		require.EqualValues(t, 200, s.Stats().URLs)
		require.Len(t, entriesFrom(t, s, 150), 50)
		for i := range 200 {
			added, err := s.Add(page(i))
			require.NoError(t, err)
			require.False(t, added)
		}
	}
	require.Positive(t, s.indexed)
}

// TestConcurrentAdds adds each URL from several goroutines: exactly one Add may return true.
func TestConcurrentAdds(t *testing.T) {
	const goroutines, urls = 4, 4000
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	told := make([]atomic.Int32, urls)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for _, i := range rand.New(rand.NewPCG(uint64(g), 0)).Perm(urls) {
				added, err := s.Add(page(i))
				if err != nil {
					t.Error(err)
				}
				if added {
					told[i].Add(1)
				}
				if i%1000 == 0 {
					_ = s.Stats()
					if err := s.Sync(); err != nil {
						t.Error(err)
					}
					for _, err := range s.Entries(0) {
						if err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range told {
		require.EqualValues(t, 1, told[i].Load(), i)
	}
	got := entriesFrom(t, s, 0)
	slices.Sort(got)
	require.Len(t, slices.Compact(got), urls)
}

// TestAddDuringASlowRead adds a URL a second time while the first Add reads the page that lacks it.
func TestAddDuringASlowRead(t *testing.T) {
	fs := &slowFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, Options{Memory: tiny})
	for i := range 200 {
		add(t, s, page(i))
	}
	require.Positive(t, s.index.count)
	for i := range s.filter {
		s.filter[i] = line{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0),
			^uint64(0), ^uint64(0)} // so that it never rules a URL out
	}
	read := false
	for i := 200; !read; i++ { // one that is before all others in the index needs no page
		fs.onRead = func() {
			fs.onRead, read = nil, true
			add(t, s, page(i))
		}
		added, err := s.Add(page(i))
		require.NoError(t, err)
		require.Equal(t, !read, added, "the second Add finished first")
	}
}

// TestAddWhileAnIndexIsSynced adds a URL while another Add syncs the new index.
func TestAddWhileAnIndexIsSynced(t *testing.T) {
	fs := &slowFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, Options{Memory: tiny})
	fs.onSync = func() {
		if s.sweep != nil && s.sweep.syncing != nil && !s.sweep.synced {
			fs.onSync = nil
			add(t, s, "meanwhile")
		}
	}
	for i := range 100 {
		add(t, s, page(i))
	}
	require.Nil(t, fs.onSync)
	require.EqualValues(t, 101, s.Stats().URLs)
}

// TestTwoSyncsOfALostEntry: if the disk loses an entry, the system tells only one of the syncs that run
// at that time. Neither may acknowledge the entry.
func TestTwoSyncsOfALostEntry(t *testing.T) {
	fs := &slowFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, Options{Memory: small})
	add(t, s, page(0))
	var running atomic.Int32
	fs.onSync = func() {
		running.Add(1)
		for tries := 0; running.Load() < 2 && tries < 10_000; tries++ { // one may have to wait for the other
			runtime.Gosched()
		}
	}
	fs.FailAt(fs.Steps()+1, syscall.EIO)
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- s.Sync() }()
	}
	for range 2 {
		require.ErrorIs(t, <-errs, ErrFailed)
	}
}

// A slowFS calls onRead at a read of a page, and onSync at a sync.
type slowFS struct {
	*vfs.Mem
	onRead, onSync func()
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

func (fs *slowFS) Create(name string) (vfs.File, error) {
	f, err := fs.Mem.Create(name)
	return &slowFile{f, fs}, err
}

func (f *slowFile) Sync() error {
	if f.fs.onSync != nil {
		f.fs.onSync()
	}
	return f.File.Sync()
}

func (f *slowFile) ReadAt(b []byte, at int64) (int, error) {
	if f.fs.onRead != nil && len(b) == pageSize {
		f.fs.onRead()
	}
	return f.File.ReadAt(b, at)
}

// TestSweepsAreSpread counts the writes of each Add. The work of a sweep grows with the index, but
// must be spread over many calls.
func TestSweepsAreSpread(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: 300 << 10})
	most := 0
	for i := range 40_000 {
		steps := fs.Steps()
		add(t, s, page(i))
		most = max(most, fs.Steps()-steps)
	}
	require.Greater(t, s.Stats().Sweeps, int64(10))
	require.Greater(t, s.index.pages(), int64(70))
	require.Less(t, most, 15, "an entry, a page, and a new manifest")
}

func TestRefusals(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	_, err := s.Add(strings.Repeat("x", MaxEntry))
	require.ErrorIs(t, err, ErrTooLarge)
	add(t, s, strings.Repeat("x", MaxEntry-maxUvarint))

	dir := t.TempDir()
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, dir)
	require.NoError(t, s.Close())
	_, err = Open(filepath.Join(dir, manifestName, "x"), Options{})
	require.Error(t, err)
	s, err = Open(dir, Options{}) // a failed Open leaves no lock
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestLeftoversAreRemoved opens a directory with leftovers of an incomplete sweep, and with foreign
// files, some with names similar to ours.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	add(t, s, "a")
	require.NoError(t, s.Close())
	others := []string{
		"deferred.txt", "index-0000008", "index-000000008", "index-00000007~", "log-", "log-+0000007",
		"log-crawler.sh", "log-new-seeds.txt", "other", "run-00000001", "index-00000000", "log-20261128",
	}
	for _, name := range append(others, "index-00000007", "log-00000008", pileNames[0], pileNames[1], manifestTemp) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	names, err := vfs.OS(dir).List()
	require.NoError(t, err)
	require.ElementsMatch(t, append(others, "MANIFEST", "lock", "log-00000001"), names)
	require.Less(t, s.file, uint64(100), "the next segment must not be the caller's log of the next day")
	require.NoError(t, s.Close())
}

// TestRecentKeepsTheLatest compares one set of the list with its definition.
func TestRecentKeepsTheLatest(t *testing.T) {
	r := newRecent(0)
	require.Len(t, r, 1)
	require.Len(t, newRecent(1000), 8)
	var latest []uint64
	random := rand.New(rand.NewPCG(1, 0))
	for range 1000 {
		f := 1 + random.Uint64N(12)
		i := slices.Index(latest, f)
		require.Equal(t, i >= 0, r.has(fingerprint(f)))
		if i >= 0 {
			latest = slices.Delete(latest, i, i+1)
		} else {
			r.add(fingerprint(f))
		}
		latest = append([]uint64{f}, latest...)
		latest = latest[:min(len(latest), setSize)]
	}
}
