package exact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

func TestDeferredURLsAreNotEntries(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	put(t, s, "b", "a", "b")
	require.Empty(t, entriesFrom(t, s, 0))
	require.Equal(t, 2, s.Stats().Deferred)
	require.NoError(t, s.Merge())
	require.Equal(t, []string{"b", "a"}, entriesFrom(t, s, 0))
	require.Zero(t, s.Stats().Deferred)
	put(t, s, "a", "c")
	require.NoError(t, s.Close()) // merges
}

func TestTheFirstDataIsKept(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	require.NoError(t, s.Defer("a", []byte("first")))
	require.NoError(t, s.Defer("a", []byte("second")))
	require.NoError(t, s.Defer("", nil))
	require.NoError(t, s.Merge())
	require.NoError(t, s.Defer("a", []byte("third")))
	require.NoError(t, s.Merge())
	var got []Entry
	for entry, err := range s.Entries(0) {
		require.NoError(t, err)
		got = append(got, entry)
	}
	require.Equal(t, []Entry{{0, "a", []byte("first")}, {1, "", nil}}, got)
}

// TestAddAnswersForDeferredURLs adds a deferred URL. It is not known yet, so Add makes it an entry,
// and the merge then drops it.
func TestAddAnswersForDeferredURLs(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	put(t, s, "a", "b")
	add(t, s, "b")
	require.Equal(t, []string{"b"}, entriesFrom(t, s, 0))
	require.NoError(t, s.Merge())
	require.Equal(t, []string{"b", "a"}, entriesFrom(t, s, 0))
	added, err := s.Add("a")
	require.NoError(t, err)
	require.False(t, added)
}

// TestAFailedMergeDiscardsTheFilterMarks adds a URL that the filter marked as new in a merge that
// failed.
func TestAFailedMergeDiscardsTheFilterMarks(t *testing.T) {
	for failing := range 4 {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, Options{Memory: small})
		put(t, s, "a", "b")
		fs.FailAt(fs.Steps()+1+failing, errFull)
		if err := s.Merge(); err == nil || s.failed != nil {
			continue
		}
		add(t, s, "a")
		require.NoError(t, s.Merge())
		require.ElementsMatch(t, []string{"a", "b"}, entriesFrom(t, s, 0))
	}
}

// TestTiersSaveWork counts the reads that the list and the filter save.
func TestTiersSaveWork(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	put(t, s, "a", "a", "a", "b")
	require.NoError(t, s.Merge())
	require.Zero(t, s.Stats().Read) // both were certainly new
	put(t, s, "a", "b")             // both are in the list
	require.NoError(t, s.Merge())
	stats := s.Stats()
	require.Zero(t, stats.Read)
	require.EqualValues(t, 6, stats.Lookups)
	require.EqualValues(t, 4, stats.Recent)
	require.EqualValues(t, 2, stats.New)
	require.EqualValues(t, 1, stats.Merges)
}

// TestMergesReadTheIndex defers known URLs that only the index has.
func TestMergesReadTheIndex(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	for i := range 3000 {
		put(t, s, page(i))
	}
	require.NoError(t, s.Merge())
	require.Greater(t, s.index.pages(), int64(4))
	read := s.Stats().Read
	for i := range 400 {
		put(t, s, page(i))
	}
	put(t, s, "new")
	require.NoError(t, s.Merge())
	require.Greater(t, s.Stats().Read, read)
	require.Equal(t, []string{"new"}, entriesFrom(t, s, 3000))
}

// TestPileReturnsItsItems reads all items, or a few, in order. Some are in the file, some in
// memory.
func TestPileReturnsItsItems(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, capacity := range []int{300, 3000, 300_000} {
		var written, read int64
		p := &pile{fs: vfs.NewMem(), name: pileNames[0], latest: make([]byte, 0, capacity), written: &written}
		var urls []string
		var places []int64
		for i := range 2000 {
			url := fmt.Sprint(i, strings.Repeat("x", random.IntN(90)))
			place, err := p.add(url, []byte(url[:i%3]))
			require.NoError(t, err)
			urls, places = append(urls, url), append(places, place)
		}
		require.Equal(t, p.spilled, written)
		require.Equal(t, capacity < 300_000, p.spilled > 0)
		for _, step := range []int{1, 7, 500} {
			r := newPileReader(p, len(urls)/step, &read)
			for i := 0; i < len(urls); i += step {
				item, err := r.item(places[i])
				require.NoError(t, err)
				url, data, ok := parseContents(item[4:])
				require.True(t, ok)
				require.Equal(t, urls[i], string(url))
				require.Equal(t, urls[i][:i%3], string(data))
			}
		}
		p.clear()
		require.Zero(t, p.size())
		require.NoError(t, p.remove())
	}
}

// cramped returns a Set with space for 30 deferred URLs, only a few of them in memory.
func cramped(t testing.TB, fs vfs.FS) *Set {
	s := mustOpen(t, fs, Options{Memory: small})
	s.deferred.sightings = make([]sighting, 0, 30)
	s.deferred.pile.latest = make([]byte, 0, 200)
	s.deferred.spare.latest = make([]byte, 0, 200)
	return s
}

// TestDamagedPileCostsWhatIsDamaged changes each byte of the spilled items in turn. The merge must detect
// it, and go on with the others the next time. What was lost is new again.
func TestDamagedPileCostsWhatIsDamaged(t *testing.T) {
	size := 1
	for i := 0; i < size; i++ {
		fs := vfs.NewMem()
		s := cramped(t, fs)
		for n := range 20 {
			require.NoError(t, s.Defer(page(n), nil))
		}
		size = len(fs.Data(pileNames[0]))
		require.Greater(t, size, 200)
		fs.Flip(pileNames[0], int64(i), 4)
		require.ErrorIs(t, s.Merge(), ErrCorrupt, "byte %d", i)
		require.NoError(t, s.Merge())
		require.Len(t, entriesFrom(t, s, 0), 19)
		news := 0
		for n := range 20 {
			added, err := s.Add(page(n))
			require.NoError(t, err)
			if added {
				news++
			}
		}
		require.Equal(t, 1, news, "byte %d", i)
	}
}

// TestDeferOnAFullDisk makes a spill fail. That URL must not be recorded, but all others must be,
// and the Set must work once there is space again.
func TestDeferOnAFullDisk(t *testing.T) {
	for failing := 1; failing <= 3; failing++ { // creating the file, and two writes
		fs := vfs.NewMem()
		s := cramped(t, fs)
		fs.FailAt(fs.Steps()+failing, errFull)
		var want []string
		refused := 0
		for i := range 25 {
			if err := s.Defer(page(i), nil); err != nil {
				require.ErrorIs(t, err, errFull)
				refused++
				continue
			}
			want = append(want, page(i))
		}
		require.Equal(t, 1, refused)
		require.NoError(t, s.Merge())
		require.Equal(t, want, entriesFrom(t, s, 0))
	}
}

// TestPileIsBounded defers URLs with so much data that the pile is full before the sightings are.
func TestPileIsBounded(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	data := make([]byte, 10_000)
	most := 0
	for i := range 200 {
		require.NoError(t, s.Defer(fmt.Sprint(i), data))
		require.LessOrEqual(t, s.deferred.pile.size(), int64(maxPile*small))
		most = max(most, s.Stats().Deferred)
	}
	pile := maxPile * small / (10_000 + 4 + maxUvarint + 3)
	require.GreaterOrEqual(t, most, pile)
	require.LessOrEqual(t, most, 2*pile)
	require.NoError(t, s.Merge())
	require.EqualValues(t, 200, s.Stats().URLs)
}

// TestCloseRemovesThePile looks for the file while the Set is open, and after Close.
func TestCloseRemovesThePile(t *testing.T) {
	fs := vfs.NewMem()
	s := cramped(t, fs)
	for i := range 20 {
		require.NoError(t, s.Defer(page(i), nil))
	}
	require.NotNil(t, fs.Data(pileNames[0]))
	require.NoError(t, s.Close())
	require.Nil(t, fs.Data(pileNames[0]))
}

func TestLargestDeferredEntry(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: tiny})
	url := longURL(MaxEntry - maxUvarint)
	require.ErrorIs(t, s.Defer(url+"u", nil), ErrTooLarge)
	require.ErrorIs(t, s.Defer(url, []byte{1}), ErrTooLarge)
	require.NoError(t, s.Defer(url, nil))
	require.NoError(t, s.Defer(url[1:], []byte{1}))
	require.NoError(t, s.Defer("", make([]byte, len(url))))
	require.NoError(t, s.Merge())
	var sizes []int
	for e, err := range s.Entries(0) {
		require.NoError(t, err)
		sizes = append(sizes, len(e.URL), len(e.Data))
	}
	require.Equal(t, []int{len(url), 0, len(url) - 1, 1, 0, len(url)}, sizes)
}
