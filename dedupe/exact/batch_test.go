package exact

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mustOpenSmall opens a Set that has room for a few sightings, and in memory for fewer URLs, so that
// merges and spills come all the time.
func mustOpenSmall(t testing.TB, d disk, o Options) *Set {
	t.Helper()
	s := mustOpen(t, d, o)
	shrink(s)
	return s
}

func shrink(s *Set) {
	s.waiting = make([]sighting, 0, 30)
	s.pile.latest = make([]byte, 0, 200)
}

// randomSightings returns sightings of few URLs, or of many, in the order of their places.
func randomSightings(random *rand.Rand, n int, urls uint64, mask uint64) []sighting {
	all := make([]sighting, n)
	place := int64(0)
	for i := range all {
		place += 1 + random.Int64N(100)
		url := random.Uint64N(urls) * 0x9e3779b97f4a7c15 & mask
		all[i] = newSighting(fingerprint{url, url % 3}, place)
	}
	return all
}

// TestSightingsAreSorted compares with the sort of the library. Fingerprints are spread as hashes
// are, crowded at either end, or all the same.
func TestSightingsAreSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, n := range []int{0, 1, 2, smallHeap, smallHeap + 1, 300, 5000} {
		for _, urls := range []uint64{1, 2, 100, 1 << 40} {
			for _, mask := range []uint64{^uint64(0), 0xfff, 0xff << 56, 0x8000_0000_0000_0001} {
				came := randomSightings(random, n, urls, mask)
				want := slices.Clone(came)
				slices.SortStableFunc(want, func(x, y sighting) int {
					return x.print().compare(y.print())
				})
				want = slices.CompactFunc(want, func(x, y sighting) bool {
					return x.print() == y.print()
				})
				got := sortPrints(slices.Clone(came))
				require.Equal(t, want, got, "%d of %d URLs, mask %x", n, urls, mask)

				slices.SortFunc(want, func(x, y sighting) int { return cmp.Compare(x.place(), y.place()) })
				sortPlaces(got)
				require.Equal(t, want, got, "%d of %d URLs, mask %x", n, urls, mask)
			}
		}
	}
}

func TestSightingKeepsItsParts(t *testing.T) {
	s := newSighting(fingerprint{1, 2}, 1<<61)
	require.False(t, s.isNew())
	s.setNew()
	require.True(t, s.isNew())
	require.Equal(t, fingerprint{1, 2}, s.print())
	require.EqualValues(t, int64(1)<<61, s.place())
}

// TestPileReturnsItsItems reads all items, or a few, in order. Some lie in the file, some in memory.
func TestPileReturnsItsItems(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, capacity := range []int{300, 3000, 300_000} {
		var written, read int64
		p := &pile{disk: newMemDisk(), latest: make([]byte, 0, capacity), written: &written}
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
				require.Equal(t, urls[i], url)
				require.Equal(t, urls[i][:i%3], string(data))
			}
		}
		p.clear()
		require.Zero(t, p.size())
		require.NoError(t, p.remove())
	}
}

// TestPileThatWasChangedIsFound changes each byte of what is spilled in turn. What a merge reads of
// it is noticed, and nothing is written. As soon as it is mended, nothing has been lost.
func TestPileThatWasChangedIsFound(t *testing.T) {
	d := newMemDisk()
	s := mustOpenSmall(t, d, Options{Memory: small})
	for i := range 20 {
		require.NoError(t, s.Add(fmt.Sprint("https://a.test/", i), nil))
	}
	data := d.names[pileName].data
	require.Greater(t, len(data), 200)
	for i := range data {
		data[i] ^= 0x10
		require.ErrorIs(t, s.Merge(), ErrCorrupt, "byte %d", i)
		require.Empty(t, urlsFrom(t, s, 0))
		data[i] ^= 0x10
	}
	require.NoError(t, s.Merge())
	require.Len(t, urlsFrom(t, s, 0), 20)
}

// TestItemsAreNoLargerThanEntries gives an item of the file a size that ends within what was read
// ahead, but that no entry may have.
func TestItemsAreNoLargerThanEntries(t *testing.T) {
	var written, read int64
	d := newMemDisk()
	p := &pile{disk: d, latest: make([]byte, 0, 200_000), written: &written}
	for range 500 {
		_, err := p.add("https://a.test/", make([]byte, 1000))
		require.NoError(t, err)
	}
	data := d.names[pileName].data
	binary.LittleEndian.PutUint32(data, MaxEntry+1)
	_, err := newPileReader(p, 500, &read).item(0)
	require.ErrorIs(t, err, ErrCorrupt)
	binary.LittleEndian.PutUint32(data, MaxEntry)
	_, err = newPileReader(p, 500, &read).item(0)
	require.NoError(t, err)
}

// TestFullDiskKeepsAddFromTakingNotice lets a spill fail. The URL was then not added, all the others
// were, and the Set goes on when there is room again.
func TestFullDiskKeepsAddFromTakingNotice(t *testing.T) {
	full := errors.New("disk full")
	for _, failing := range []int{1, 2, 3} { // making the file, and two writes
		d := newMemDisk()
		s := mustOpenSmall(t, d, Options{Memory: small})
		d.failAt, d.failure = d.steps+failing, full
		var want []string
		refused := 0
		for i := range 25 {
			url := fmt.Sprint("https://a.test/", i)
			err := s.Add(url, nil)
			if err != nil {
				require.ErrorIs(t, err, full)
				refused++
				continue
			}
			want = append(want, url)
		}
		require.Equal(t, 1, refused)
		require.NoError(t, s.Merge())
		require.Equal(t, want, urlsFrom(t, s, 0))
	}
}

// TestPileIsBounded adds URLs with so much data that the room for them is full before that for
// sightings is.
func TestPileIsBounded(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	data := make([]byte, 10_000)
	most := 0
	for i := range 200 {
		require.NoError(t, s.Add(fmt.Sprint(i), data))
		require.LessOrEqual(t, s.pile.size(), int64(maxPile*small))
		most = max(most, s.Stats().Waiting)
	}
	require.Equal(t, maxPile*small/(10_000+4+maxUvarint+3), most)
	require.NoError(t, s.Merge())
	require.Len(t, urlsFrom(t, s, 0), 200)
}

// TestPileGoesWithTheSet looks for the file while the Set is open, and afterwards.
func TestPileGoesWithTheSet(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Memory: small})
	require.NoError(t, err)
	shrink(s)
	for i := range 20 {
		require.NoError(t, s.Add(fmt.Sprint("https://a.test/", i), nil))
	}
	require.FileExists(t, directory(dir).path(pileName))
	require.NoError(t, s.Close())
	require.NoFileExists(t, directory(dir).path(pileName))
}
