package exact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// segmentOf writes entries to a segment as a merge does.
func segmentOf(t testing.TB, d disk, first uint64, entries []Entry) segment {
	t.Helper()
	s := segment{number: 7, first: first}
	f, err := d.create(s.name())
	require.NoError(t, err)
	w := newWriter(f, 0)
	w.write(s.header())
	for _, e := range entries {
		item := appendContents(make([]byte, 4), e.URL, e.Data)
		binary.LittleEndian.PutUint32(item, uint32(len(item)-4))
		w.write(appendRecord(nil, e.Seq, item))
	}
	require.NoError(t, w.finish())
	s.size = w.at
	return s
}

// randomEntries returns entries of all sizes there are, up to the largest.
func randomEntries(random *rand.Rand, first uint64, n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		url := strings.Repeat("u", random.IntN(200))
		if random.IntN(20) == 0 {
			url = strings.Repeat("u", random.IntN(MaxEntry-maxUvarint))
		}
		data := make([]byte, random.IntN(min(300, MaxEntry-maxUvarint-len(url))))
		entries[i] = Entry{first + uint64(i), url, append([]byte(nil), data...)}
	}
	return entries
}

// TestSegmentsShowWhatWasWritten reads from any number on, across the buffer's ends.
func TestSegmentsShowWhatWasWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	const first = 1000
	entries := randomEntries(random, first, 500)
	d := newMemDisk()
	s := segmentOf(t, d, first, entries)
	for _, from := range []uint64{0, first, first + 1, first + 250, first + 499, first + 500, 1 << 60} {
		var want, got []Entry
		for _, e := range entries {
			if e.Seq >= from {
				want = append(want, e)
			}
		}
		require.True(t, walkAll(t, d, s, mark{first, segmentHeader}, from, func(e Entry, err error) bool {
			require.NoError(t, err)
			got = append(got, e)
			return true
		}))
		require.Equal(t, want, got)
	}
}

// TestWalkStopsWhenItIsToldTo counts calls after the one that returned false.
func TestWalkStopsWhenItIsToldTo(t *testing.T) {
	d := newMemDisk()
	s := segmentOf(t, d, 0, randomEntries(rand.New(rand.NewPCG(2, 0)), 0, 10))
	calls := 0
	require.False(t, walkAll(t, d, s, mark{0, segmentHeader}, 4, func(e Entry, err error) bool {
		require.NoError(t, err)
		calls++
		return calls < 3
	}))
	require.Equal(t, 3, calls)
}

// TestMarksFindTheLatestBatch asks after each merge for what is new, as a crawler does. It must not
// cost more and more.
func TestMarksFindTheLatestBatch(t *testing.T) {
	d := newMemDisk()
	s := mustOpen(t, d, Options{Memory: small})
	var urls []string
	for i := range 200 {
		for range 5 {
			urls = append(urls, strings.Repeat("u", 1000)+fmt.Sprint(len(urls)))
			add(t, s, urls[len(urls)-1])
		}
		require.NoError(t, s.Merge())
		reads := d.reads
		require.Equal(t, urls[5*i:], urlsFrom(t, s, 5*i))
		require.LessOrEqual(t, d.reads-reads, 2, "header and entries")
	}
	require.Greater(t, s.disked.segments[0].size, int64(3*writeSize))
	for from := 0; from < len(urls); from += 97 {
		require.Equal(t, urls[from:], urlsFrom(t, s, from))
	}
}

// TestMarksAreBounded compares marks with all there were.
func TestMarksAreBounded(t *testing.T) {
	var m marks
	s := segment{number: 4, first: 10}
	require.Equal(t, mark{10, segmentHeader}, m.before(s, 100))
	for i := range uint64(5000) {
		m.add(4, mark{20 + 2*i, int64(1000 + i)})
		require.LessOrEqual(t, len(m.all), maxMarks)
		for _, seq := range []uint64{10, 19, 20, 21, 20 + i, 20 + 2*i, 1 << 40} {
			found := m.before(s, seq)
			require.LessOrEqual(t, found.seq, max(seq, 10))
			if found.seq >= 20 {
				require.EqualValues(t, 1000+(found.seq-20)/2, found.at)
			}
		}
		require.Equal(t, mark{20 + 2*i, int64(1000 + i)}, m.before(s, 20+2*i))
	}
	require.Equal(t, mark{20, segmentHeader}, m.before(segment{number: 5, first: 20}, 30))
	m.add(5, mark{30, 40})
	require.Equal(t, mark{10, segmentHeader}, m.before(s, 100))
}

// TestEntriesCannotChangePlaces copies an entry over another one of the same size.
func TestEntriesCannotChangePlaces(t *testing.T) {
	d := newMemDisk()
	s := segmentOf(t, d, 0, []Entry{{0, "a", nil}, {1, "b", nil}})
	data := d.names[s.name()].data
	size := (len(data) - segmentHeader) / 2
	copy(data[segmentHeader:], data[segmentHeader+size:])
	require.False(t, walkAll(t, d, s, mark{0, segmentHeader}, 0, func(e Entry, err error) bool {
		require.ErrorIs(t, err, ErrCorrupt, "%+v", e)
		return true
	}))
}

// TestNothingIsWrittenOver fails a merge at each of its steps. What it has written behind the end of
// a segment must stay as it is, as a MANIFEST may name it.
func TestNothingIsWrittenOver(t *testing.T) {
	for failing := 1; ; failing++ {
		d := newMemDisk()
		s := mustOpen(t, d, Options{Memory: small})
		add(t, s, "a")
		require.NoError(t, s.Merge())
		last := d.names[s.disked.segments[0].name()]
		size := len(last.data)
		add(t, s, "b")
		d.failAt, d.failure = d.steps+failing, errFull
		if s.Merge() == nil {
			require.Greater(t, failing, 8)
			return
		}
		touched := len(last.data) > size || len(last.writes) > 0
		data, writes := slices.Clone(last.data), len(last.writes)
		add(t, s, "c")
		require.NoError(t, s.Merge())
		if touched {
			require.Equal(t, data, last.data, "step %d", failing)
			require.Len(t, last.writes, writes, "step %d", failing)
		}
		require.Equal(t, []string{"a", "b", "c"}, entriesOf(t, s))
	}
}

func TestLargestEntry(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	url := strings.Repeat("u", MaxEntry-maxUvarint)
	require.ErrorIs(t, s.Add(url+"u", nil), ErrTooLarge)
	require.ErrorIs(t, s.Add(url, []byte{1}), ErrTooLarge)
	require.NoError(t, s.Add(url, nil))
	require.NoError(t, s.Add(url[1:], []byte{1}))
	require.NoError(t, s.Add("", make([]byte, len(url))))
	require.NoError(t, s.Merge())
	var sizes []int
	for e, err := range s.Entries(0) {
		require.NoError(t, err)
		sizes = append(sizes, len(e.URL), len(e.Data))
	}
	require.Equal(t, []int{len(url), 0, len(url) - 1, 1, 0, len(url)}, sizes)
}

// TestEntriesAreTheCallers changes what a walk gave, and walks again.
func TestEntriesAreTheCallers(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	add(t, s, "a", "b")
	require.NoError(t, s.Merge())
	var kept []Entry
	for e, err := range s.Entries(0) {
		require.NoError(t, err)
		kept = append(kept, e)
	}
	for _, e := range kept {
		require.Equal(t, "data of "+e.URL, string(e.Data))
		clear(e.Data)
	}
	require.Equal(t, []string{"a", "b"}, entriesOf(t, s))
}

// TestWalksGoOnDuringMerges changes the Set at each entry that a walk shows. It shows what there was
// when it began, even if that is trimmed meanwhile, as long as the files are there.
func TestWalksGoOnDuringMerges(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	for i := range 20 {
		add(t, s, fmt.Sprint(i))
	}
	require.NoError(t, s.Merge())
	shown := 0
	for e, err := range s.Entries(0) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(shown), e.URL)
		shown++
		add(t, s, fmt.Sprint("more ", shown))
		require.NoError(t, s.Merge())
		require.NoError(t, s.Trim(uint64(shown)))
	}
	require.Equal(t, 20, shown)
	require.Len(t, urlsFrom(t, s, 20), 20)
}

// TestWalkThatIsOvertakenByATrimSaysSo trims files away that a walk has not come to.
func TestWalkThatIsOvertakenByATrimSaysSo(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	s.segmentSize = 1 // each merge begins a new one
	for i := range 4 {
		add(t, s, fmt.Sprint(i))
		require.NoError(t, s.Merge())
	}
	var got []string
	for e, err := range s.Entries(0) {
		if err != nil {
			require.ErrorIs(t, err, ErrTrimmed)
			require.Zero(t, e)
			got = append(got, "trimmed")
			continue
		}
		got = append(got, e.URL)
		require.NoError(t, s.Trim(3))
	}
	require.Equal(t, []string{"0", "trimmed"}, got)
	require.Equal(t, []string{"3"}, urlsFrom(t, s, 3))
}

// FuzzSegment takes any bytes for the entries of a segment, as they are and with checksums that fit.
// What is shown is written as the same bytes again; the rest is corrupt.
func FuzzSegment(f *testing.F) {
	d := newMemDisk()
	s := segmentOf(f, d, 3, []Entry{{3, "https://a.test/", []byte("x")}, {4, "", nil}})
	f.Add(d.names[s.name()].data[segmentHeader:])
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3, 4})
	f.Add([]byte{2, 0, 0, 0, 0x80, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, records []byte) {
		checkSegment(t, records)
		mend(records, 3)
		checkSegment(t, records)
	})
}

// walkAll opens a segment and walks through it.
func walkAll(t *testing.T, d disk, s segment, start mark, from uint64,
	yield func(Entry, error) bool) bool {
	t.Helper()
	r, err := openSegment(d, s)
	require.NoError(t, err)
	return walk(r, start, from, yield)
}

func checkSegment(t *testing.T, records []byte) {
	t.Helper()
	d := newMemDisk()
	s := segment{number: 7, first: 3, size: segmentHeader + int64(len(records))}
	d.names[s.name()] = &memFile{disk: d, data: append(s.header(), records...)}
	var entries []Entry
	walkAll(t, d, s, mark{3, segmentHeader}, 0, func(e Entry, err error) bool {
		if err == nil {
			entries = append(entries, e)
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		return true
	})
	again := newMemDisk()
	written := segmentOf(t, again, 3, entries)
	data := again.names[written.name()].data[segmentHeader:]
	if !bytes.HasPrefix(records, data) {
		t.Errorf("%x shows %+v, which is %x", records, entries, data)
	}
}

// mend makes the checksums fit the entries, which are numbered from seq on.
func mend(records []byte, seq uint64) {
	for len(records) >= recordFrame {
		size := int64(binary.LittleEndian.Uint32(records))
		if size > int64(len(records)-recordFrame) {
			return
		}
		body := records[:4+size]
		binary.LittleEndian.PutUint32(records[4+size:], recordChecksum(seq, body))
		records = records[recordFrame+size:]
		seq++
	}
}
