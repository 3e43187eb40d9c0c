package archive

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// openTestIndex opens an index in a directory.
func openTestIndex(t testing.TB, files vfs.FS) *index {
	t.Helper()
	x, err := openIndex(files, writeIndex)
	require.NoError(t, err)
	return x
}

// known is an entry of the model, with its URL and the name of its file.
type known struct {
	url, file string
	entry     entry
}

func compareKnown(a, b known) int {
	return cmp.Or(cmp.Compare(a.url, b.url), compareEntries(a.entry, b.entry))
}

// compareEntries orders the entries of one URL like their keys.
func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.file, b.file),
		cmp.Compare(a.offset, b.offset))
}

// indexModel is a model of an index: a list of all entries.
type indexModel struct {
	all       []known // sorted
	committed []known // those that survive a crash
	numbers   map[string]uint32
}

func (m *indexModel) add(k known) {
	at, found := slices.BinarySearchFunc(m.all, k, compareKnown)
	if found {
		m.all[at] = k
		return
	}
	m.all = slices.Insert(m.all, at, k)
}

// entries returns the entries of a URL up to a time, and the time of the next one.
func (m *indexModel) entries(url string, t int64) (list []entry, until int64) {
	until = never
	for _, k := range m.all {
		switch {
		case k.url == url && k.entry.time <= t:
			list = append(list, k.entry)
		case k.url == url:
			until = min(until, k.entry.time)
		}
	}
	return list, until
}

// randomEntry returns an entry of one of few URLs, files and times, so that many are similar.
func (m *indexModel) randomEntry(r *rand.Rand) known {
	urls := []string{"a,b)/\x00http", "a,b)/\x00https", "a,b)/c\x00http", "a)/\x00http", "x",
		"a,b)/c/d\x00http"}
	e := entry{time: r.Int64N(12) - 6, offset: r.Int64N(3), length: 1 + r.Int64N(1000),
		kind: Kind(r.IntN(3)), status: 200 + r.IntN(300), truncated: r.IntN(5) == 0}
	if r.IntN(2) == 0 {
		sum := [20]byte{byte(r.IntN(3))}
		e.digest, e.media = sha1Digest(&sum), []string{"", "text/html", "x/y"}[r.IntN(3)]
	}
	if e.kind != Changed && r.IntN(2) == 0 {
		e.content = address{uint32(r.IntN(3)), r.Int64N(1 << 40), 1 + r.Int64N(99), 200}
		e.prior, e.hasPrior = e.time-r.Int64N(3), true
	}
	file := fmt.Sprintf("f%d.warc.gz", r.IntN(3))
	if _, met := m.numbers[file]; !met {
		m.numbers[file] = uint32(len(m.numbers))
	}
	e.file = m.numbers[file]
	url := urls[r.IntN(len(urls))]
	if url == "x" {
		e.url = "http://long.test/"
	}
	return known{url, file, e}
}

// requireIndex requires that lookups of the index match the model.
func requireIndex(t *testing.T, x *index, m *indexModel, r *rand.Rand) {
	t.Helper()
	for range 20 {
		k := m.randomEntry(r)
		at := k.entry.time
		if r.IntN(4) == 0 {
			at = never - 1
		}
		want, wantUntil := m.entries(k.url, at)
		e, found, until, err := x.floor(k.url, at)
		require.NoError(t, err)
		require.Equal(t, len(want) > 0, found)
		require.Equal(t, wantUntil, until, "%q %d", k.url, at)
		if found {
			require.Equal(t, want[len(want)-1], e)
			stored, found, err := x.value(k.url, &e)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, e, stored)
		}
		k.entry.offset = 77
		_, found, err = x.value(k.url, &k.entry)
		require.NoError(t, err)
		require.False(t, found)
		all, _ := m.entries(k.url, never)
		got, err := x.versions(k.url)
		require.NoError(t, err)
		require.Equal(t, all, got[:len(got):len(got)])
		var back []entry
		limit := 1 + r.IntN(4) // the caller may stop early
		require.NoError(t, x.back(k.url, k.entry, func(e *entry) bool {
			back = append(back, *e)
			return len(back) < limit
		}))
		slices.Reverse(all)
		all = slices.DeleteFunc(all, func(e entry) bool { return compareEntries(e, k.entry) >= 0 })
		require.ElementsMatch(t, all[:min(len(all), limit)], back)
	}
}

// Random additions, commits and crashes, compared with a model.
func TestIndexMatchesModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 11))
			files := vfs.NewMem()
			x := openTestIndex(t, files)
			m := &indexModel{numbers: map[string]uint32{}}
			for i := range 150 {
				switch r.IntN(12) {
				case 0:
					require.NoError(t, x.commit())
					m.committed = slices.Clone(m.all)
				case 2: // a close without a commit, like a crash
					require.NoError(t, x.close(false))
					x = openTestIndex(t, files)
					m.all = slices.Clone(m.committed)
					m.numbers = map[string]uint32{}
					for n, name := range x.names {
						m.numbers[name] = uint32(n)
					}
				default:
					k := m.randomEntry(r)
					x.add(k.file, k.url, &k.entry, "", int64(i))
					state, ok := x.state(k.file)
					require.True(t, ok)
					require.EqualValues(t, i, state.end)
					m.add(k)
				}
				requireIndex(t, x, m, r)
			}
			require.NoError(t, x.commit())
			requireScan(t, x, m)
			require.NoError(t, x.close(true))
		})
	}
}

// requireScan requires that a scan of all keys has the entries of the model.
func requireScan(t *testing.T, x *index, m *indexModel) {
	t.Helper()
	var got []known
	for l, err := range x.scan(urlkey.All) {
		require.NoError(t, err)
		got = append(got, known{l.url, x.name(l.entry.file), l.entry})
	}
	slices.SortFunc(got, compareKnown) // a URL may be a prefix of the key of another one
	require.Equal(t, m.all, got)
}

// The number of a file never changes.
func TestNumbersOfFiles(t *testing.T) {
	files := vfs.NewMem()
	x := openTestIndex(t, files)
	for range 2 {
		for i, name := range []string{"c", "a", "b"} {
			number, _ := x.file(name)
			require.EqualValues(t, i, number)
			require.Equal(t, name, x.name(number))
		}
		require.NoError(t, x.close(true))
		x = openTestIndex(t, files)
	}
	require.Empty(t, x.name(99))
	require.Empty(t, x.name(math.MaxUint32), "also if int has 32 bits")
	_, known := x.state("d")
	require.False(t, known)
	require.False(t, x.dirty, "lookups change nothing")
	require.NoError(t, x.close(true))
}

// Queries of a closed index return ErrClosed.
func TestClosedIndex(t *testing.T) {
	x := openTestIndex(t, vfs.NewMem())
	require.NoError(t, x.close(true))
	_, _, _, err := x.floor("key 7", never-1)
	require.ErrorIs(t, err, ErrClosed)
	_, err = x.versions("key 7")
	require.ErrorIs(t, err, ErrClosed)
	_, _, err = x.body("x")
	require.ErrorIs(t, err, ErrClosed)
}

// slowFiles is a disk on which each write blocks in wait.
type slowFiles struct {
	*vfs.Mem
	wait func()
}

func (s slowFiles) Create(name string) (vfs.File, error) {
	f, err := s.Mem.Create(name)
	return slowFile{f, s.wait}, err
}

type slowFile struct {
	vfs.File
	wait func()
}

func (f slowFile) WriteAt(p []byte, at int64) (int, error) {
	f.wait()
	return f.File.WriteAt(p, at)
}

// A stalled commit blocks neither lookups nor additions below the limit.
func TestStalledCommit(t *testing.T) {
	gate := make(chan struct{})
	started := make(chan struct{}, 100)
	x := openTestIndex(t, slowFiles{vfs.NewMem(), func() {
		started <- struct{}{}
		<-gate
	}})
	x.limit = 100
	add := func(i int) {
		e := entry{time: int64(i), offset: int64(i), length: 1, kind: Changed}
		x.add("f.warc.gz", fmt.Sprint("key ", i), &e, "", int64(i))
	}
	for i := range 100 {
		add(i)
	}
	<-started // the commit is stalled
	for i := range 190 {
		require.NoError(t, x.admit())
		add(i)
		_, found, _, err := x.floor(fmt.Sprint("key ", i), never-1)
		require.NoError(t, err)
		require.True(t, found)
	}
	n := 0
	for _, err := range x.scan(urlkey.All) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 190, n)
	close(gate)
	require.NoError(t, x.close(true))
}

// Memory is bounded: admit waits for slow commits, and returns the error of a failed one.
func TestMemoryOfTheIndexIsBounded(t *testing.T) {
	files := vfs.NewMem()
	x := openTestIndex(t, files)
	x.limit = 10
	files.SetSpace(0)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		e := entry{time: int64(i), length: 1, kind: Changed}
		x.add("f.warc.gz", "key", &e, "", int64(i))
		err = x.admit()
	}
	require.ErrorIs(t, err, syscall.ENOSPC, "the disk is full")
	count, _ := x.lsm().Waiting()
	require.LessOrEqual(t, count, 20)
	files.SetSpace(-1)
	require.NoError(t, x.admit(), "there is space again")
	all, err := x.versions("key")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 20)
	require.NoError(t, x.close(true))
}

// A commit in the background that failed is reported, unless a later one has made up for it.
func TestALaterCommitMakesUpForAFailedOne(t *testing.T) {
	for _, again := range []bool{false, true} {
		files := vfs.NewMem()
		x := openTestIndex(t, files)
		x.add("f.warc.gz", "key", &entry{length: 1, kind: Changed}, "", 0)
		files.SetSpace(0)
		require.ErrorIs(t, x.write(true), errUnwritten)
		files.SetSpace(-1)
		if again {
			require.NoError(t, x.commit())
			require.NoError(t, x.close(true))
		} else {
			require.ErrorIs(t, x.close(false), syscall.ENOSPC)
		}
	}
}

// Goroutines add and look up during commits and merges.
func TestIndexInParallel(t *testing.T) {
	files := vfs.NewMem()
	x := openTestIndex(t, files)
	x.limit = 50
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				url := fmt.Sprintf("%d/%d", g, i)
				e := entry{time: int64(i), offset: int64(i), length: 1, kind: Changed}
				if err := x.admit(); err != nil {
					t.Error(err)
				}
				x.add(fmt.Sprint(g), url, &e, "", int64(i))
				if _, found, _, err := x.floor(url, never-1); !found || err != nil {
					t.Error("lost", err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, x.close(true))
	x = openTestIndex(t, files)
	n := 0
	for _, err := range x.scan(urlkey.All) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2000, n)
	require.NoError(t, x.close(true))
}

// versions returns all entries of a URL.
func (x *index) versions(url string) (all []entry, err error) {
	err = x.valid(urlkey.Span{Low: url + "\x00", High: url + "\x01"}, func(l *located, _ int64) error {
		all = append(all, l.entry)
		return nil
	})
	return all, err
}
