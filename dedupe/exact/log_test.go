package exact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// segmentOf writes a segment with the given entries.
func segmentOf(t testing.TB, fs *vfs.Mem, first uint64, entries []Entry) segment {
	t.Helper()
	s := segment{number: 7, first: first}
	l := log{segment: s, next: first}
	data := s.header()
	for _, e := range entries {
		data = l.appendRecord(data, appendItem(nil, e.URL, e.Data))
		l.next++
	}
	fs.Put(s.name(), data)
	s.size = int64(len(data))
	return s
}

// randomEntries returns entries of all possible sizes, up to the largest.
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

// walkAll opens a segment and reads its entries.
func walkAll(t *testing.T, fs *vfs.Mem, s segment, from uint64, yield func(Entry, error) bool) bool {
	t.Helper()
	r, err := openSegment(fs, s)
	require.NoError(t, err)
	return r.walk(from, yield)
}

// TestSegmentsReturnWhatWasWritten reads from several numbers on, across buffer boundaries.
func TestSegmentsReturnWhatWasWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	const first = 1000
	entries := randomEntries(random, first, 500)
	fs := vfs.NewMem()
	s := segmentOf(t, fs, first, entries)
	for _, from := range []uint64{0, first, first + 1, first + 250, first + 499, first + 500, 1 << 60} {
		var want, got []Entry
		for _, e := range entries {
			if e.Seq >= from {
				want = append(want, e)
			}
		}
		require.True(t, walkAll(t, fs, s, from, func(e Entry, err error) bool {
			require.NoError(t, err)
			got = append(got, e)
			return true
		}))
		require.Equal(t, want, got)
	}
	calls := 0
	require.False(t, walkAll(t, fs, s, first+4, func(Entry, error) bool {
		calls++
		return calls < 3
	}))
	require.Equal(t, 3, calls)
}

// TestEntriesAreFoundFast reads the new entries after each Add, as a crawler does. The cost must
// not grow.
func TestEntriesAreFoundFast(t *testing.T) {
	fs := newFaultyFS()
	s := mustOpen(t, fs, Options{Memory: small})
	var urls []string
	for i := range 1000 {
		urls = append(urls, strings.Repeat("u", 1000)+strconv.Itoa(i))
		add(t, s, urls[i])
		reads := fs.reads.Load()
		require.Equal(t, urls[i:], entriesFrom(t, s, i))
		require.LessOrEqual(t, fs.reads.Load()-reads, int64(2), "header and entries")
	}
	require.Greater(t, s.log.end, int64(3*durable.WriteSize))
	check := func() {
		for from := 0; from < len(urls); from += 97 {
			require.Equal(t, urls[from:], entriesFrom(t, s, from))
		}
	}
	check()
	starts := s.log.starts
	require.Greater(t, len(starts), 10)
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, Options{Memory: small})
	check()
	require.Equal(t, starts, s.log.starts)
}

// TestSwappedEntriesAreDetected copies an entry over another one of the same size.
func TestSwappedEntriesAreDetected(t *testing.T) {
	fs := vfs.NewMem()
	s := segmentOf(t, fs, 0, []Entry{{0, "a", nil}, {1, "b", nil}})
	data := fs.Data(s.name())
	size := (len(data) - segmentHeader) / 2
	copy(data[segmentHeader:], data[segmentHeader+size:])
	fs.Put(s.name(), data)
	require.False(t, walkAll(t, fs, s, 0, func(e Entry, err error) bool {
		require.ErrorIs(t, err, ErrCorrupt, "%+v", e)
		return true
	}))
}

// TestEntriesAreCopies modifies the yielded entries, and reads them again.
func TestEntriesAreCopies(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	put(t, s, "a", "b")
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
	require.Equal(t, []string{"a", "b"}, entriesFrom(t, s, 0))
}

// TestChangesDuringAnIteration changes the Set at each yielded entry. The iteration yields the
// entries that existed at its start, even trimmed ones, as long as their file exists.
func TestChangesDuringAnIteration(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	for i := range 20 {
		add(t, s, fmt.Sprint(i))
	}
	shown := 0
	for e, err := range s.Entries(0) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(shown), e.URL)
		shown++
		add(t, s, fmt.Sprint("more ", shown))
		require.NoError(t, s.Trim(uint64(shown)))
	}
	require.Equal(t, 20, shown)
	require.Len(t, entriesFrom(t, s, 20), 20)
}

func TestTrim(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: small})
	add(t, s, "a", "b", "c")
	require.NoError(t, s.Trim(2))
	require.Equal(t, []string{"c"}, entriesFrom(t, s, 2))
	for range 2 {
		for _, err := range s.Entries(1) {
			require.ErrorIs(t, err, ErrTrimmed)
		}
		require.NoError(t, s.Trim(1)) // has no effect
	}
	require.NoError(t, s.Trim(100)) // trims all
	require.EqualValues(t, 3, s.Stats().Trimmed)
	add(t, s, "d")
	require.Equal(t, []string{"d"}, entriesFrom(t, s, 3))
}

// TestSegmentsAreCutAndTrimmed fills several segments. Files stay until the index has their URLs,
// trimmed or not.
func TestSegmentsAreCutAndTrimmed(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: small})
	s.segmentSize = 1000
	for i := 0; len(s.older) < 2; i++ {
		add(t, s, strconv.Itoa(i))
	}
	second, third := s.older[1].first, s.log.first
	for _, from := range []uint64{0, second - 1, second, second + 1, third} {
		require.Equal(t, strconv.Itoa(int(from)), entriesFrom(t, s, int(from))[0])
	}
	require.NoError(t, s.Trim(third))
	require.Len(t, s.older, 2, "nothing is indexed")
	for i := int(s.log.next); s.indexed < third; i++ {
		add(t, s, strconv.Itoa(i))
	}
	require.Empty(t, s.older[0].first < third, "all trimmed segments are removed")
	names, _ := fs.List()
	require.NotContains(t, names, "log-00000001")

	require.NoError(t, s.Close())
	s = mustOpen(t, fs, Options{Memory: small})
	added, err := s.Add("0")
	require.NoError(t, err)
	require.False(t, added, "a URL with a trimmed entry stays known")
}

// TestMissingIsNotTrimmed: a file that cannot be opened was not trimmed, although the log has grown
// and gone on to the next segment since the iteration started.
func TestMissingIsNotTrimmed(t *testing.T) {
	disk := vfs.NewMem()
	s := mustOpen(t, disk, Options{Memory: tiny})
	s.segmentSize = 1
	add(t, s, "a", "b")
	var got error
	for e, err := range s.Entries(0) {
		if got = err; e.URL != "a" {
			continue
		}
		last := s.log.name()
		s.segmentSize = 1000
		add(t, s, "c")
		s.segmentSize = 1
		add(t, s, "d")
		require.NoError(t, disk.Remove(last))
	}
	require.ErrorIs(t, got, ErrCorrupt)
}

// TestTrimDuringAnIteration trims segments that an iteration has not reached yet.
func TestTrimDuringAnIteration(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Memory: tiny})
	s.segmentSize = 1 // one entry per segment
	for i := range 200 {
		add(t, s, strconv.Itoa(i))
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
		require.NoError(t, s.Trim(100))
	}
	require.Equal(t, []string{"0", "trimmed"}, got)
	require.Equal(t, "100", entriesFrom(t, s, 100)[0])
}

// FuzzSegment uses arbitrary bytes as the entries of a segment, as they are and with valid
// checksums. Writing the entries that it reads must give the same bytes; the rest is corrupt.
func FuzzSegment(f *testing.F) {
	fs := vfs.NewMem()
	s := segmentOf(f, fs, 3, []Entry{{3, "https://a.test/", []byte("x")}, {4, "", nil}})
	f.Add(fs.Data(s.name())[segmentHeader:])
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3, 4})
	f.Add([]byte{2, 0, 0, 0, 0x80, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, records []byte) {
		checkSegment(t, records)
		mend(records, 3)
		checkSegment(t, records)
	})
}

func checkSegment(t *testing.T, records []byte) {
	t.Helper()
	fs := vfs.NewMem()
	s := segment{number: 7, first: 3, size: segmentHeader + int64(len(records))}
	fs.Put(s.name(), append(s.header(), records...))
	var entries []Entry
	walkAll(t, fs, s, 0, func(e Entry, err error) bool {
		if err == nil {
			entries = append(entries, e)
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		return true
	})
	again := vfs.NewMem()
	written := segmentOf(t, again, 3, entries)
	data := again.Data(written.name())[segmentHeader:]
	if !bytes.HasPrefix(records, data) {
		t.Errorf("%x has entries %+v, which encode to %x", records, entries, data)
	}
}

// mend sets the checksums of the entries, which are numbered from seq on.
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
