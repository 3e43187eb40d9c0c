package exact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// tiny is enough memory for 24 URLs in a table and one deferred URL, small for ten times as many in
// a table and a thousand deferred URLs.
const (
	tiny  = 1
	small = 48 << 10
)

var errFull = errors.New("disk full")

// A faultyFS counts reads, and makes one of them fail.
type faultyFS struct {
	*vfs.Mem
	reads  atomic.Int64
	failAt int64 // of reads; 0 for none
}

type faultyFile struct {
	vfs.File
	fs *faultyFS
}

func newFaultyFS() *faultyFS { return &faultyFS{Mem: vfs.NewMem()} }

func (fs *faultyFS) Open(name string) (vfs.File, error) { return fs.wrap(fs.Mem.Open(name)) }

func (fs *faultyFS) Create(name string) (vfs.File, error) { return fs.wrap(fs.Mem.Create(name)) }

func (fs *faultyFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, fs}, nil
}

func (f *faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if f.fs.reads.Add(1) == f.fs.failAt {
		return 0, errFull
	}
	return f.File.ReadAt(b, at)
}

func mustOpen(t testing.TB, fs vfs.FS, o Options) *Set {
	t.Helper()
	s, err := open(fs, o)
	require.NoError(t, err)
	s.stepPages = 1
	return s
}

// kill leaves a Set in the state after kill -9: nothing is merged, synced or removed.
func kill(t testing.TB, s *Set) {
	t.Helper()
	require.NoError(t, s.lock.Close())
}

// add adds URLs that must be new.
func add(t testing.TB, s *Set, urls ...string) {
	t.Helper()
	for _, url := range urls {
		added, err := s.Add(url)
		require.NoError(t, err)
		require.True(t, added, url)
	}
}

// put defers URLs, with data.
func put(t testing.TB, s *Set, urls ...string) {
	t.Helper()
	for _, url := range urls {
		require.NoError(t, s.Defer(url, []byte("data of "+url)))
	}
}

// entriesFrom returns the URLs of the entries from a number on. Entries have the data that put
// gives them, or none.
func entriesFrom(t testing.TB, s *Set, from int) (urls []string) {
	t.Helper()
	for entry, err := range s.Entries(uint64(from)) {
		require.NoError(t, err)
		require.EqualValues(t, from+len(urls), entry.Seq)
		if entry.Data != nil {
			require.Equal(t, "data of "+entry.URL, string(entry.Data))
		}
		urls = append(urls, entry.URL)
	}
	return urls
}

// page returns the i-th URL.
func page(i int) string { return fmt.Sprint("https://a.test/", i) }

// longURL returns a URL of n bytes.
func longURL(n int) string { return page(1) + strings.Repeat("x", n-len(page(1))) }

// randomPrints returns sorted distinct fingerprints. With a mask, they are crowded.
func randomPrints(random *rand.Rand, n int, mask uint64) []fingerprint {
	met := map[fingerprint]bool{0: true}
	var prints []fingerprint
	for range n {
		f := fingerprint(random.Uint64() & mask)
		if !met[f] {
			met[f] = true
			prints = append(prints, f)
		}
	}
	return sortedPrints(prints)
}
