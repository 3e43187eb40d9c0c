package archive

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// openTestIndex opens an index in a directory.
func openTestIndex(t testing.TB, dir string) *index {
	t.Helper()
	x, err := openIndex(filepath.Join(dir, indexName), lockWait)
	require.NoError(t, err)
	return x
}

// known is an entry as the model has it: with the names of its URL and its file.
type known struct {
	url, file string
	entry     entry
}

func compareKnown(a, b known) int {
	return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.entry.time, b.entry.time),
		cmp.Compare(a.entry.file, b.entry.file), cmp.Compare(a.entry.offset, b.entry.offset))
}

// indexModel is an index in the simplest form: all entries in a list.
type indexModel struct {
	all       []known // sorted
	committed []known // what a crash leaves
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

// back returns the entries of a URL up to a time, the last one first, and the time after them.
func (m *indexModel) back(url string, t int64) (list []entry, until int64) {
	until = never
	for _, k := range m.all {
		switch {
		case k.url == url && k.entry.time <= t:
			list = append(list, k.entry)
		case k.url == url:
			until = min(until, k.entry.time)
		}
	}
	slices.Reverse(list)
	return list, until
}

// randomEntry makes entries of few URLs, files and times, so that many are nearly the same.
func (m *indexModel) randomEntry(r *rand.Rand) known {
	urls := []string{"a,b)/\x00http", "a,b)/\x00https", "a,b)/c\x00http", "a)/\x00http", "x", "a,b)/c/d\x00http"}
	e := entry{time: r.Int64N(12) - 6, offset: r.Int64N(3), length: 1 + r.Int64N(1000),
		kind: Kind(r.IntN(3)), status: 200 + r.IntN(300), truncated: r.IntN(5) == 0}
	if r.IntN(2) == 0 {
		sum := [20]byte{byte(r.IntN(3))}
		e.digest, e.media = sha1Digest(&sum), []string{"", "text/html", "x/y"}[r.IntN(3)]
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

// requireIndex holds that the index answers as the model does.
func requireIndex(t *testing.T, x *index, m *indexModel, r *rand.Rand) {
	t.Helper()
	for range 20 {
		k := m.randomEntry(r)
		at := k.entry.time
		if r.IntN(4) == 0 {
			at = never
		}
		want, until := m.back(k.url, at)
		limit := 1 + r.IntN(4) // who asks may have enough
		var got []entry
		gotUntil, err := x.back(k.url, at, func(e *entry) bool {
			got = append(got, *e)
			return len(got) < limit
		})
		require.NoError(t, err)
		require.Equal(t, want[:min(len(want), limit)], got[:len(got):len(got)], "%q %d", k.url, at)
		require.Equal(t, until, gotUntil, "%q %d", k.url, at)
	}
}

// Random histories of an index, with commits, files that are dropped, and crashes.
func TestIndexIsThatOfTheModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 11))
			dir := t.TempDir()
			x := openTestIndex(t, dir)
			m := &indexModel{numbers: map[string]uint32{}}
			for i := range 150 {
				x.part = 1 + r.IntN(4)
				switch r.IntN(12) {
				case 0:
					require.NoError(t, x.commit())
					m.committed = slices.Clone(m.all)
				case 1: // a crash in the midst of a commit, after which files are indexed again
					cutShort(t, x, 1+r.IntN(3))
					require.NoError(t, x.close())
					x = openTestIndex(t, dir)
					for _, k := range m.all {
						x.add(k.file, k.url, &k.entry, x.files[k.file].end)
					}
					require.NoError(t, x.commit()) // as recovery ends
					m.committed = slices.Clone(m.all)
				case 2: // closed without a commit, which is all that a crash is
					require.NoError(t, x.close())
					x = openTestIndex(t, dir)
					m.all = slices.Clone(m.committed)
					m.numbers = map[string]uint32{}
					for n, name := range x.names {
						m.numbers[name] = uint32(n)
					}
				case 3:
					if r.IntN(3) == 0 {
						name := m.randomEntry(r).file
						require.NoError(t, x.drop(name))
						gone := func(k known) bool { return k.file == name }
						m.all = slices.DeleteFunc(m.all, gone)
						m.committed = slices.DeleteFunc(m.committed, gone)
					}
				default:
					k := m.randomEntry(r)
					x.add(k.file, k.url, &k.entry, int64(i))
					end, ok := x.end(k.file)
					require.True(t, ok)
					require.EqualValues(t, i, end)
					m.add(k)
				}
				requireIndex(t, x, m, r)
			}
			require.NoError(t, x.commit())
			requireWalks(t, x, m)
			require.NoError(t, x.close())
		})
	}
}

// cutShort commits so many URLs, and not the rest. The first part that ever is has the numbers of
// all files.
func cutShort(t *testing.T, x *index, urls int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle.end()
	all := slices.Sorted(maps.Keys(x.pending))
	ends := map[string]int64{}
	for name, f := range x.files {
		ends[name] = f.kept
	}
	require.NoError(t, x.commitPart(all[:min(urls, len(all))], false))
	require.NoError(t, x.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(filesBucket).ForEach(func(_, value []byte) error {
			require.EqualValues(t, ends[string(value[8:])], binary.BigEndian.Uint64(value))
			return nil
		})
	}))
}

// requireWalks holds that walking over all entries, and over all URLs, meets those of the model.
func requireWalks(t *testing.T, x *index, m *indexModel) {
	t.Helper()
	var got []known
	for l, err := range x.forward() {
		require.NoError(t, err)
		got = append(got, known{l.url, x.name(l.entry.file), l.entry})
	}
	slices.SortFunc(got, compareKnown) // a URL may be the beginning of another one's key
	require.Equal(t, m.all, got)
	var urls, want []string
	for url, err := x.seekURL(""); url != ""; url, err = x.seekURL(behind(url)) {
		require.NoError(t, err)
		urls = append(urls, url)
	}
	for _, k := range m.all {
		want = append(want, k.url)
	}
	require.Equal(t, slices.Compact(want), urls)
}

// A file has one number for ever.
func TestNumbersOfFiles(t *testing.T) {
	dir := t.TempDir()
	x := openTestIndex(t, dir)
	for range 2 {
		for i, name := range []string{"c", "a", "b"} {
			number, _ := x.file(name)
			require.EqualValues(t, i, number)
			require.Equal(t, name, x.name(number))
		}
		require.NoError(t, x.commit())
		require.NoError(t, x.close())
		x = openTestIndex(t, dir)
	}
	require.Empty(t, x.name(99))
	require.Empty(t, x.name(math.MaxUint32), "also where that is no int")
	_, known := x.end("d")
	require.False(t, known)
	require.False(t, x.dirty(), "asking changes nothing")
	require.NoError(t, x.close())
}

// The pages that readers at rest have seen are used again, and the file can grow beneath them.
func TestReadersAtRestDoNotHinderCommits(t *testing.T) {
	dir := t.TempDir()
	x := openTestIndex(t, dir)
	var sizes []int64
	for round := range 12 {
		for i := range 400 { // the same entries again and again
			e := entry{time: int64(i), offset: int64(i), length: int64(round + 1), kind: Changed}
			x.add("f.warc.gz", fmt.Sprintf("key %d", i%50), &e, 1)
		}
		require.NoError(t, x.commit())
		_, err := x.back("key 7", never, func(e *entry) bool {
			require.EqualValues(t, round+1, e.length, "what was committed is seen at once")
			return false
		})
		require.NoError(t, err)
		require.Len(t, x.idle.idle, 1, "and the reader rests")
		info, err := os.Stat(filepath.Join(dir, indexName))
		require.NoError(t, err)
		sizes = append(sizes, info.Size())
	}
	require.Equal(t, sizes[3], sizes[11], "pages are used again")
	big := entry{length: 1, kind: Changed}
	for i := range 9_000 { // more than was mapped at first
		big.time = int64(i)
		x.add("f.warc.gz", "big", &big, 1)
	}
	require.NoError(t, x.commit())
	require.NoError(t, x.close())
	_, err := x.back("key 7", never, func(*entry) bool { return false })
	require.ErrorIs(t, err, ErrClosed)
	_, err = x.seekURL("")
	require.ErrorIs(t, err, ErrClosed)
}

// No more readers rest than are of use.
func TestReadersAtRestAreBounded(t *testing.T) {
	x := openTestIndex(t, t.TempDir())
	var inside, all sync.WaitGroup
	inside.Add(2 * maxIdle)
	for range 2 * maxIdle {
		all.Go(func() {
			err := x.view(func(*bbolt.Cursor) error {
				inside.Done()
				inside.Wait() // until everybody has a reader
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, x.idle.idle, maxIdle)
	require.NoError(t, x.close())
}

// A reader that met a broken page, or whose caller failed, does not come back wrongly.
func TestReadersThatFail(t *testing.T) {
	x := openTestIndex(t, t.TempDir())
	broken := errors.New("broken")
	require.ErrorIs(t, x.view(func(*bbolt.Cursor) error { return broken }), broken)
	require.Len(t, x.idle.idle, 1, "the reader was not at fault")
	err := x.view(func(*bbolt.Cursor) error { panic("page 7") })
	require.ErrorIs(t, err, ErrIndex)
	require.ErrorContains(t, err, "page 7")
	require.Empty(t, x.idle.idle)
	e := entry{kind: Changed, length: 1}
	x.add("f", "a", &e, 1)
	require.NoError(t, x.commit(), "nothing was left open")
	require.NoError(t, x.close())
}
