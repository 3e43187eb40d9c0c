package archive

import (
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A body that other URLs had before is stored once, within a crawl and across crawls. Its versions
// are still changes of their URLs, and each is read as if it were stored in full.
func TestOneBodyOfManyURLs(t *testing.T) {
	dir := t.TempDir()
	opts := Options{Share: true}
	template := strings.Repeat("a page that many sites have ", 60)
	at := func(i int) time.Time { return someTime.Add(time.Duration(i) * time.Hour) }
	visits := []struct {
		visit
		record, refers string
		kind           Kind
	}{
		{visit{"http://a.test/", at(0), 200, template}, "response", "", Changed},
		{visit{"http://b.test/", at(1), 200, template}, "revisit", "http://a.test/", Changed},
		{visit{"http://b.test/", at(2), 200, template}, "revisit", "http://a.test/", Unchanged},
		{visit{"http://b.test/", at(3), 304, ""}, "revisit", "http://a.test/", Unchanged},
		{visit{"http://b.test/", at(4), 200, "its own"}, "response", "", Changed},
		{visit{"http://b.test/", at(5), 200, template}, "revisit", "http://a.test/", Changed},
		{visit{"http://b.test/", at(6), 404, template}, "response", "", Failed},
		{visit{"http://b.test/", at(7), 200, template}, "revisit", "http://a.test/", Unchanged},
		{visit{"http://c.test/", at(8), 200, template}, "revisit", "http://a.test/", Changed},
		{visit{"http://d.test/", at(9), 200, "its own"}, "response", "", Changed}, // too small
	}
	a := openDir(t, dir, opts)
	for i, v := range visits {
		if i == 8 { // another crawl
			require.EqualValues(t, 5, a.Stats().Revisits)
			require.NoError(t, a.Close())
			a = openDir(t, dir, opts)
		}
		loc, err := a.Append(v.capture())
		require.NoError(t, err)
		rec, err := a.Read(loc)
		require.NoError(t, err)
		require.Equal(t, v.record, rec.Type(), i)
		require.Equal(t, v.refers, rec.Get("WARC-Refers-To-Target-URI"), i)
		if v.refers != "" {
			require.Equal(t, "2026-11-03T03:05:06.007008Z", rec.Get("WARC-Refers-To-Date"))
		}
		require.NoError(t, rec.Close())
	}
	for range 2 {
		for i, want := range visits {
			v, err := a.At(want.url, want.at)
			require.NoError(t, err)
			require.Equal(t, want.kind, v.Kind, i)
			text := want.body
			if want.status == 304 {
				text = template
			}
			require.Equal(t, text, body(t, a, v), i)
		}
		s, err := a.Snapshot(Query{})
		require.NoError(t, err)
		require.Len(t, documents(t, s), 4)
		require.NoError(t, s.Close())
		faults, checked := verify(t, a)
		require.Empty(t, faults)
		require.EqualValues(t, len(visits), checked.Versions)
		require.NoError(t, a.Close())
		before := indexContents(t, dir)
		_, err = Repair(dir, opts)
		require.NoError(t, err)
		require.Equal(t, before, indexContents(t, dir))
		a = openDir(t, dir, opts)
	}
	require.NoError(t, a.Close())
}

// A body that comes back after another one is a change of its URL, also in a new index: else a 304 that is appended
// then would confirm the body in between.
func TestBodyThatComesBack(t *testing.T) {
	first, second := strings.Repeat("first ", 300), strings.Repeat("second ", 300)
	for name, again := range map[string]func(*vfs.Mem) error{
		"kill":    func(*vfs.Mem) error { return nil },
		"reindex": func(m *vfs.Mem) error { _, err := RepairOn(m, Options{}); return err },
	} {
		disk := vfs.NewMem()
		a, err := OpenOn(disk, Options{Share: true})
		require.NoError(t, err)
		visits := []visit{{"http://a.test/", someTime, 200, first}, {"http://a.test/", someTime, 200, second},
			{"http://a.test/", someTime, 200, first}, {"http://a.test/", someTime, 304, ""}}
		for i, v := range visits {
			if i == 3 {
				disk = disk.Clone()
				require.NoError(t, again(disk))
				a, err = OpenOn(disk, Options{Share: true})
				require.NoError(t, err)
			}
			v.at = v.at.Add(time.Duration(i) * time.Hour)
			_, err := a.Append(v.capture())
			require.NoError(t, err)
		}
		versions, err := a.Versions("http://a.test/")
		require.NoError(t, err)
		for i, want := range []string{first, second, first, first} {
			require.Equal(t, want, body(t, a, versions[i]), name)
			require.Equal(t, i < 3, versions[i].Kind == Changed, name)
		}
		require.NoError(t, a.Close())
	}
}

// Equal bytes with and without a content coding are two documents.
func TestContentCodingOfARepeat(t *testing.T) {
	text := ""
	for i := range 1000 {
		text += fmt.Sprint(i*i, " ")
	}
	packed := gzipped(t, []byte(text))
	require.Greater(t, len(packed), minShared)
	for _, urls := range [][]string{{"http://a.test/x.gz"}, {"http://a.test/x.gz", "http://b.test/x.gz"}} {
		for first := range 2 {
			dir := t.TempDir()
			a := openDir(t, dir, Options{Share: true})
			for i := range 4 { // of one kind, of the other, and again
				c := page(urls[i/2%len(urls)], "")
				c.Time, c.Body = someTime.Add(time.Duration(i)*time.Hour), packed
				c.Head = []byte("HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\n\r\n")
				if i/2 == first {
					c.Head = []byte("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
				}
				_, err := a.Append(c)
				require.NoError(t, err)
			}
			require.EqualValues(t, 2, a.Stats().Revisits)
			require.NoError(t, a.Close())
			before := indexContents(t, dir)
			for _, opts := range []Options{{}, {Reindex: true}} {
				a = openDir(t, dir, opts)
				for i := range 4 {
					v, err := a.At(urls[i/2%len(urls)], someTime.Add(time.Duration(i)*time.Hour))
					require.NoError(t, err)
					want := string(packed)
					if i/2 == first {
						want = text
					}
					got, err := a.Body(v)
					require.NoError(t, err)
					require.True(t, want == string(got), i)
				}
				faults, _ := verify(t, a)
				require.Empty(t, faults)
				require.NoError(t, a.Close())
			}
			require.Equal(t, before, indexContents(t, dir))
		}
	}
}

// When Share is set later, the bodies stored before are found.
func TestShareSetLater(t *testing.T) {
	dir := t.TempDir()
	template := strings.Repeat("text ", 400)
	a := openDir(t, dir, Options{})
	for i := range 3 {
		v := visit{fmt.Sprintf("http://%d.test/", i), someTime, 200, template}
		_, err := a.Append(v.capture())
		require.NoError(t, err)
	}
	require.Zero(t, a.Stats().Revisits)
	require.NoError(t, a.Close())
	for i := range 2 {
		a = openDir(t, dir, Options{Share: true})
		v := visit{fmt.Sprintf("http://later-%d.test/", i), someTime, 200, template}
		_, err := a.Append(v.capture())
		require.NoError(t, err)
		require.EqualValues(t, 1, a.Stats().Revisits)
		require.NoError(t, a.Close())
	}
}

// New records do not refer to a missing record. Verify reports records that refer to one.
func TestMissingSharedBody(t *testing.T) {
	dir := t.TempDir()
	template := strings.Repeat("text ", 400)
	opts := Options{Share: true, MaxFile: 1}
	a := openDir(t, dir, opts)
	first, err := a.Append(visit{"http://a.test/", someTime, 200, template}.capture())
	require.NoError(t, err)
	_, err = a.Append(visit{"http://b.test/", someTime, 200, template}.capture())
	require.NoError(t, err)
	require.NoError(t, a.fs.Remove(first.File))
	faults, _ := verify(t, a)
	found := false
	for _, f := range faults {
		found = found || f.Err == errReference && f.URL == "http://b.test/"
	}
	require.True(t, found, "%v", faults)
	loc, err := a.Append(visit{"http://c.test/", someTime, 200, template}.capture())
	require.NoError(t, err)
	rec, err := a.Read(loc)
	require.NoError(t, err)
	require.Equal(t, "response", rec.Type())
	require.NoError(t, rec.Close())
	require.NoError(t, a.Close())
}

// A file of another program with a wrong digest cannot replace a fetched body by its own, neither
// for its URL nor for another one.
func TestForeignDigestsAreNotTrusted(t *testing.T) {
	genuine := strings.Repeat("genuine ", 300)
	honest := strings.Repeat("honest ", 300)
	forged := foreignPage("http://a.test/", someTime, 200, "FORGED")
	sum := sha1.Sum([]byte(genuine))
	forged.head.Payload = &sum
	path := writeForeign(t, t.TempDir(), "x.warc.gz",
		forged, foreignPage("http://b.test/", someTime, 200, honest))
	for _, share := range []bool{false, true} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{Share: share})
		_, err := a.Import(path)
		require.NoError(t, err)
		for i, v := range []visit{
			{"http://a.test/", someTime.Add(time.Hour), 200, genuine},
			{"http://c.test/", someTime.Add(time.Hour), 200, genuine},
			{"http://b.test/", someTime.Add(time.Hour), 200, honest},
		} {
			loc, err := a.Append(v.capture())
			require.NoError(t, err)
			found, err := a.At(v.url, time.Time{})
			require.NoError(t, err)
			require.Equal(t, v.body, body(t, a, found))
			rec, err := a.Read(loc)
			require.NoError(t, err)
			want := "response"
			if i == 2 || i == 1 && share { // of the honest page, and of the first visit
				want = "revisit"
			}
			require.Equal(t, want, rec.Type(), i)
			require.NoError(t, rec.Close())
		}
		require.NoError(t, a.Close())
	}
}

// Bodies appended without Share are found when it is set again.
func TestSharingOffAndOn(t *testing.T) {
	dir := t.TempDir()
	for i, share := range []bool{true, false, true} {
		a := openDir(t, dir, Options{Share: share})
		text := strings.Repeat([]string{"one ", "two ", "two "}[i], 600)
		_, err := a.Append(visit{fmt.Sprintf("http://%d.test/", i), someTime, 200, text}.capture())
		require.NoError(t, err)
		require.EqualValues(t, []int64{0, 0, 1}[i], a.Stats().Revisits)
		require.NoError(t, a.Close())
	}
}

// Memory per shared body is bounded.
func TestMemoryOfSharing(t *testing.T) {
	const n = 150_000
	x := openTestIndex(t, vfs.OS(t.TempDir()))
	x.limit = n / 3
	r := rand.New(rand.NewPCG(1, 1))
	heap() // empties the pools
	before := heap()
	for i := range n {
		var sum [20]byte
		for j := range sum {
			sum[j] = byte(r.Uint32())
		}
		x.lsm().Put(bodyKey(sha1Digest(&sum)), address{1, int64(i) * 7000, 7000, 200}.append(nil))
		x.dirty = true
		require.NoError(t, x.admit())
	}
	require.NoError(t, x.commit())
	x.ended.Wait()
	heap()
	used := float64(int64(heap())-int64(before)) / n
	t.Logf("%.1f bytes of memory per body", used)
	require.Less(t, used, 16.0)
	require.NoError(t, x.close(true))
}

// readCounter counts reads of files.
type readCounter struct {
	*vfs.Mem
	reads atomic.Int64
}

func (c *readCounter) Open(name string) (vfs.File, error) {
	f, err := c.Mem.Open(name)
	if err != nil {
		return nil, err
	}
	return countedFile{f, c}, nil
}

// Create counts the reads of the file.
func (c *readCounter) Create(name string) (vfs.File, error) {
	f, err := c.Mem.Create(name)
	return countedFile{f, c}, err
}

type countedFile struct {
	vfs.File
	c *readCounter
}

func (f countedFile) ReadAt(p []byte, at int64) (int, error) {
	f.c.reads.Add(1)
	return f.File.ReadAt(p, at)
}

// The cost of a lookup does not depend on the number of visits of a page, even if all last versions
// are unchanged or failed.
func TestLookupCostIsConstant(t *testing.T) {
	for name, status := range map[string]int{"unchanged": 304, "failed": 404} {
		cost := map[int]int64{}
		for _, visits := range []int{20, 20_000} {
			files := &readCounter{Mem: vfs.NewMem()}
			a, err := OpenOn(files, Options{})
			require.NoError(t, err)
			loc, err := a.Append(visit{"http://a.test/", someTime, 200, "body"}.capture())
			require.NoError(t, err)
			key, _ := urlkey.Of("http://a.test/")
			first, _, _, err := a.index.floor(key, never-1)
			require.NoError(t, err)
			for i := range visits { // as Append makes them
				e := entry{time: first.time + int64(i+1)*1e6, offset: int64(i), length: 1,
					status: status, kind: kindOf(status, false), prior: first.time, hasPrior: true}
				if e.kind == Unchanged {
					e.content, e.digest = first.address(), first.digest
				}
				a.index.add("other.warc.gz", key, &e, "", int64(i))
			}
			require.NoError(t, a.Commit())
			files.reads.Store(0)
			v, err := a.At("http://a.test/", time.Time{})
			require.NoError(t, err)
			if status == 304 {
				require.Equal(t, loc, v.Content)
			}
			c := visit{"http://a.test/", someTime.Add(1000 * time.Hour), 200, "body"}.capture()
			of, err := a.pending(c).repeats((*[20]byte)([]byte(first.digest[1:])))
			require.NoError(t, err)
			require.Equal(t, warc.ProfileIdentical, of.profile)
			cost[visits] = files.reads.Load()
			require.NoError(t, a.Close())
		}
		require.Equal(t, cost[20], cost[20_000], name)
		require.Positive(t, cost[20])
	}
}
