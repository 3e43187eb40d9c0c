package archive

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var errDisk = errors.New("disk on fire")

// requireExactly requires that the files can be read to their ends, and have exactly the
// acknowledged captures, at their locations.
func requireExactly(t *testing.T, contents map[string][]byte, acknowledged map[string]Location) {
	t.Helper()
	got := map[string]Location{}
	for name, data := range contents {
		captures, err := readCaptures(data)
		require.NoError(t, err, name)
		for _, c := range captures {
			file := strings.TrimSuffix(name, unfinished)
			got[c.fields["WARC-Target-URI"]] = Location{file, c.offset, c.length}
		}
	}
	require.Equal(t, acknowledged, got)
}

// smallCrawl appends four captures, one of them too large for the buffer, some into new files. It
// adds those that succeed to acknowledged, and returns the first error.
func smallCrawl(a *store, acknowledged map[string]Location, round string) error {
	var first error
	for i := range 4 {
		c := page(fmt.Sprintf("http://a.test/%s/%d", round, i), strings.Repeat("x", i%4*40))
		if i%2 == 1 {
			c.Request = nil
		}
		loc, err := a.Append(c)
		if err == nil {
			acknowledged[c.URL] = loc
		} else if first == nil {
			first = err
		}
	}
	return first
}

// faultOptions make files short, so that a small crawl starts new ones and syncs.
var faultOptions = Options{MaxFile: 1500, SyncEvery: 1000,
	Info: map[string]string{"software": "", "format": "", "conformsTo": ""}}

func TestDiskFullAnywhere(t *testing.T) {
	a, whole := openMemory(t, faultOptions)
	a.buffered = 250
	require.NoError(t, smallCrawl(a, map[string]Location{}, "a"))
	require.NoError(t, a.Close())
	total := 0
	for _, data := range whole.contents() {
		total += len(data)
	}
	require.Greater(t, len(whole.contents()), 1)

	encoders := [2]*encoder{testEncoder(-1), testEncoder(-1)} // too large to make anew each time
	for room := range total / 3 {
		room *= 3 // each record and each step of a write is longer than that
		a, m := openMemory(t, faultOptions)
		a.buffered = 250
		<-a.encoders
		a.encoders <- encoders[0]
		a.out().encoder = encoders[1]
		acknowledged := map[string]Location{}
		m.set(room, nil)
		err := smallCrawl(a, acknowledged, "a")
		require.ErrorIs(t, err, syscall.ENOSPC, "room for %d", room)
		require.ErrorContains(t, err, "append it again")
		requireExactly(t, m.contents(), acknowledged)
		require.EqualValues(t, len(acknowledged), a.Stats().Captures)

		if room%2 == 0 { // space comes back
			m.set(-1, nil)
			require.NoError(t, smallCrawl(a, acknowledged, "b"))
		}
		require.NoError(t, a.Close())
		requireExactly(t, m.contents(), acknowledged)
		for name, data := range m.contents() {
			require.NotContains(t, name, unfinished)
			captures, err := readCaptures(data)
			require.NoError(t, err)
			require.NotEmpty(t, captures, "no file is left without captures")
		}
	}
}

// Whichever operation fails, at once or later, no acknowledged capture is lost, and when the
// operation works again, so does the archive.
func TestEveryOperationMayFail(t *testing.T) {
	for _, op := range []string{"create", "rename", "sync names", "write", "sync", "close"} {
		t.Run(strings.ReplaceAll(op, " ", "-"), func(t *testing.T) {
			a, m := openMemory(t, faultOptions)
			acknowledged := map[string]Location{}
			for round := range 4 {
				m.set(-1, map[string]error{op: errDisk})
				err := smallCrawl(a, acknowledged, fmt.Sprintf("failing-%d", round))
				require.ErrorIs(t, err, errDisk)
				requireExactly(t, m.contents(), acknowledged)

				m.set(-1, nil)
				require.NoError(t, smallCrawl(a, acknowledged, fmt.Sprintf("working-%d", round)))
				requireExactly(t, m.contents(), acknowledged)
			}
			_, err := a.Append(page("http://a.test/last", ""))
			require.NoError(t, err)
			m.set(-1, map[string]error{op: errDisk})
			err = a.Close()
			if slices.Contains([]string{"close", "rename", "sync names"}, op) {
				require.ErrorIs(t, err, errDisk)
			}
			for _, f := range m.files {
				require.True(t, f.closed, "no file is left open")
			}
		})
	}
}

// Random appends, failures of every kind, syncs and restarts are compared with a map of the
// acknowledged captures. Finished files have these and nothing else.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			m := newMemory()
			acknowledged := replay(t, m, r)
			for name, data := range m.contents() {
				captures, err := readCaptures(data)
				if !strings.HasSuffix(name, unfinished) {
					require.NoError(t, err, name)
				}
				for i, c := range captures {
					loc := Location{strings.TrimSuffix(name, unfinished), c.offset, c.length}
					url := c.fields["WARC-Target-URI"]
					if acknowledged[url] == loc {
						delete(acknowledged, url)
						continue
					}
					// A capture that was not acknowledged is the last one of an abandoned file.
					require.Contains(t, name, unfinished)
					require.Equal(t, len(captures)-1, i)
				}
			}
			require.Empty(t, acknowledged, "lost")
		})
	}
}

// replay runs archives in m, and returns the acknowledged captures.
func replay(t *testing.T, m *memory, r *rand.Rand) map[string]Location {
	ops := []string{
		"create", "rename", "sync names", "write", "sync", "close", "truncate", "remove",
	}
	acknowledged := map[string]Location{}
	opts := Options{Level: -1, Compressors: 1, MaxFile: int64(r.IntN(5000)), SyncEvery: 2000}
	a, err := open(m, opts)
	require.NoError(t, err)
	for i := range 60 {
		m.set(-1, nil)
		switch r.IntN(6) {
		case 0:
			m.set(r.IntN(1500), map[string]error{ops[r.IntN(len(ops))]: errDisk})
		case 1:
			one, two := ops[r.IntN(len(ops))], ops[r.IntN(len(ops))]
			m.set(-1, map[string]error{one: errDisk, two: errDisk})
		case 2:
			if i%5 == 0 { // a new process, with or without Close in the old one
				if r.IntN(2) == 0 {
					require.NoError(t, a.Close())
				}
				a, err = open(m, opts)
				require.NoError(t, err)
			}
		case 3:
			err := a.Sync() // only what was lost before makes it fail now
			require.Equal(t, err, a.Sync())
		}
		a.buffered = r.IntN(2) * 500
		c := page(fmt.Sprintf("http://a.test/%d", i), strings.Repeat("x", r.IntN(1000)))
		if loc, err := a.Append(c); err == nil {
			acknowledged[c.URL] = loc
		}
	}
	m.set(-1, nil)
	require.NoError(t, a.Close())
	return acknowledged
}

// If a torn capture cannot be cut off, the file is abandoned: a reader would not find captures
// after the tear.
func TestTornCaptureThatCannotBeCutOff(t *testing.T) {
	for _, room := range []int{1, 100, 400, 500} {
		t.Run(fmt.Sprintf("room=%d", room), func(t *testing.T) {
			a, m := openMemory(t, Options{})
			first, err := a.Append(page("http://a.test/first", ""))
			require.NoError(t, err)

			m.set(room, map[string]error{"truncate": errDisk})
			_, err = a.Append(page("http://a.test/torn", strings.Repeat("x", 1000)))
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorIs(t, err, errDisk)

			m.set(-1, nil)
			second, err := a.Append(page("http://a.test/second", ""))
			require.NoError(t, err)
			require.NotEqual(t, first.File, second.File)
			require.NoError(t, a.Close())

			contents := m.contents()
			captures, err := readCaptures(contents[first.File+unfinished])
			require.Error(t, err, "the file is torn, and named unfinished")
			require.Len(t, captures, 1)
			captures, err = readCaptures(contents[second.File])
			require.NoError(t, err)
			require.Len(t, captures, 1)
		})
	}
}

// After a failed sync, no later one may succeed: another goroutine may rely on it.
func TestFailedSyncStaysFailed(t *testing.T) {
	a, m := openMemory(t, Options{MaxFile: 1})
	first, err := a.Append(page("http://a.test/1", ""))
	require.NoError(t, err)

	m.set(-1, map[string]error{"sync": errDisk})
	_, err = a.Append(page("http://a.test/2", "")) // would finish the first file
	require.ErrorIs(t, err, errDisk)
	m.set(-1, nil)
	second, err := a.Append(page("http://a.test/2", ""))
	require.NoError(t, err)

	require.ErrorIs(t, a.Sync(), errDisk, "the first capture may be lost")
	require.ErrorIs(t, a.Sync(), errDisk, "it still may")
	require.NoError(t, a.Close())
	contents := m.contents()
	require.Contains(t, contents, first.File+unfinished, "not named finished")
	require.Contains(t, contents, second.File)
}

// If only the capture whose Append failed is affected, Sync has nothing to report.
func TestFailedSyncWithoutOtherCaptures(t *testing.T) {
	a, m := openMemory(t, Options{SyncEvery: 1})
	m.set(-1, map[string]error{"sync": errDisk})
	_, err := a.Append(page("http://a.test/", ""))
	require.ErrorIs(t, err, errDisk)
	require.NoError(t, a.Sync())
	require.Empty(t, m.contents())
}

func TestSyncOnCloseFails(t *testing.T) {
	a, m := openMemory(t, Options{})
	loc, err := a.Append(page("http://a.test/", ""))
	require.NoError(t, err)
	m.set(-1, map[string]error{"sync": errDisk})
	require.ErrorIs(t, a.Close(), errDisk)
	captures, err := readCaptures(m.contents()[loc.File+unfinished])
	require.NoError(t, err)
	require.Len(t, captures, 1)
}

func TestOrderOfOperations(t *testing.T) {
	probe := []string{"list", "create", "close", "remove"}
	begin := []string{"create", "write", "sync names"}
	finish := []string{"sync", "close", "rename", "sync names"}
	tests := []struct {
		name      string
		syncEvery int64
		want      []string // between begin and finish
	}{
		{"a file is synced before it is renamed", 0, []string{"write"}},
		{"nothing else is synced without SyncEvery", -1, []string{"write"}},
		{"every capture is synced", 1, []string{"write", "sync", "write", "sync", "write"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, m := openMemory(t, Options{SyncEvery: tt.syncEvery})
			for range 3 {
				_, err := a.Append(page("http://a.test/", ""))
				require.NoError(t, err)
			}
			require.NoError(t, a.Close())
			want := slices.Concat(probe, begin, tt.want, finish)
			require.Equal(t, want, m.log)
		})
	}
}

func TestSyncEvery(t *testing.T) {
	a, m := openMemory(t, Options{SyncEvery: 5000})
	for range 40 {
		_, err := a.Append(page("http://a.test/", strings.Repeat("x", 600)))
		require.NoError(t, err)
		require.Less(t, a.out().end-a.out().synced, int64(5000), "more than SyncEvery may be lost")
	}
	require.LessOrEqual(t, int64(countOps(m.log, "sync")), a.out().end/5000)
	before := countOps(m.log, "sync")
	require.NoError(t, a.Sync())
	require.NoError(t, a.Sync(), "nothing to sync")
	require.LessOrEqual(t, countOps(m.log, "sync"), before+1)
	require.Equal(t, a.out().end, a.out().synced)
}

// Append does not wait for the disk while the disk keeps up: a background sync starts at half of
// SyncEvery.
func TestSyncInTheBackground(t *testing.T) {
	a, m := openMemory(t, Options{SyncEvery: 2 * startEvery, MaxFile: -1})
	random := make([]byte, 1<<20)
	add := func() error {
		c := page("http://a.test/", "")
		c.Body = random
		_, err := a.Append(c)
		a.out().forces.Wait()
		return err
	}
	for range 5 {
		require.NoError(t, add())
	}
	require.GreaterOrEqual(t, a.out().synced, int64(startEvery))
	require.Equal(t, 1, countOps(m.log, "sync"))
	m.set(-1, map[string]error{"sync": errDisk})
	for range 5 {
		require.NoError(t, add(), "this capture is not affected")
	}
	m.set(-1, nil)
	require.ErrorIs(t, a.Sync(), errDisk)
	require.NoError(t, a.Close())
}

func countOps(log []string, op string) (n int) {
	for _, done := range log {
		if done == op {
			n++
		}
	}
	return n
}

func TestOpenFails(t *testing.T) {
	for _, op := range []string{"create", "close", "remove"} {
		m := newMemory()
		m.fail[op] = errDisk
		_, err := open(m, Options{})
		require.ErrorIs(t, err, errDisk, op)
		require.ErrorContains(t, err, "give a directory")
	}
}

func TestFilesFails(t *testing.T) {
	a, m := openMemory(t, Options{})
	m.fail["list"] = errDisk
	_, err := a.Files()
	require.ErrorIs(t, err, errDisk)
}
