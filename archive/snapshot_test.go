package archive

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// naive returns the documents of a snapshot by definition, as "URL time body".
func naive(m model, q Query, inScope func(url string) bool) (want []string) {
	low, high := int64(-never), int64(never)
	if !q.From.IsZero() {
		low = microseconds(q.From)
	}
	if !q.To.IsZero() {
		high = microseconds(q.To)
	}
	seen := map[string]bool{}
	for _, v := range m {
		if seen[v.url] || !inScope(v.url) {
			continue
		}
		seen[v.url] = true
		list := m.of(v.url)
		for i, v := range list {
			end := int64(never)
			if i+1 < len(list) {
				end = microseconds(list[i+1].at)
			}
			text, known := v.body, v.status == 200 || q.Failed
			if v.status == 304 {
				text, known = content(list, i)
			}
			if q.Relations&allen.Of(microseconds(v.at), end, low, high) != 0 && known {
				want = append(want, fmt.Sprintf("%s %d %s", v.url, v.at.UnixMicro(), text))
			}
		}
	}
	slices.Sort(want)
	return want
}

// documents returns the documents of a snapshot in the same form, and requires that addresses
// ascend.
func documents(t testing.TB, s *Snapshot) (got []string) {
	t.Helper()
	var last Location
	for doc, err := range s.Documents() {
		require.NoError(t, err)
		if doc.Content.File == last.File {
			require.GreaterOrEqual(t, doc.Content.Offset, last.Offset)
		}
		last = doc.Content
		rec, err := doc.Record()
		require.NoError(t, err)
		require.Equal(t, doc.Content.Offset, rec.Offset)
		h, err := rec.HTTP()
		require.NoError(t, err)
		text, err := io.ReadAll(h.Body)
		require.NoError(t, err)
		require.NoError(t, rec.Close())
		got = append(got, fmt.Sprintf("%s %d %s", doc.URL, doc.Time.UnixMicro(), text))
	}
	require.Equal(t, s.Len(), len(got))
	slices.Sort(got)
	return got
}

// randomArchive returns an archive with a random history.
func randomArchive(t testing.TB, seed uint64, n int, opts Options) (*Archive, model) {
	r := rand.New(rand.NewPCG(seed, 5))
	m := randomVisits(r, n)
	a := openDir(t, t.TempDir(), opts)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for _, v := range m {
		_, err := a.Append(v.capture())
		require.NoError(t, err)
	}
	return a, m
}

// Snapshots of random histories, by each relation, by sets of relations and by scope.
func TestSnapshotsMatchModel(t *testing.T) {
	const dir = "http://b.test/d/"
	scopes := map[string]struct {
		set  func(*Query)
		in   func(url, part string) bool
		part string
	}{
		"all":    {func(*Query) {}, strings.Contains, ""},
		"host":   {func(q *Query) { q.Host = "a.test" }, strings.Contains, "/a.test"},
		"site":   {func(q *Query) { q.Site = "a.test" }, strings.Contains, "a.test"},
		"prefix": {func(q *Query) { q.Prefix = dir }, strings.HasPrefix, dir},
	}
	sets := map[string]allen.Relations{
		"latest": allen.Latest, "found": allen.Found, "valid": allen.Valid, "any": 1<<13 - 1,
	}
	for i := range 13 { // each alone
		sets[fmt.Sprint(i)] = 1 << i
	}
	for seed := range uint64(3) {
		opts := []Options{
			{MaxFile: 6000}, {Compression: warc.Zstd, MaxFile: 3000}, {Share: true},
		}
		a, m := randomArchive(t, seed, 60, opts[seed])
		first, last := m[10].at, m[len(m)-20].at
		for interval, q := range map[string]Query{
			"whole": {}, "from": {From: first}, "to": {To: last},
			"between": {From: first, To: last},
			"instant": {From: last, To: last.Add(time.Microsecond)},
		} {
			for set, relations := range sets {
				for scope, s := range scopes {
					if seed > 0 && scope != "all" {
						continue
					}
					q := q
					q.Relations, q.Failed, q.Memory = relations, seed == 1, 1+int(seed)*1000
					s.set(&q)
					snapshot, err := a.Snapshot(q)
					require.NoError(t, err)
					want := naive(m, q, func(url string) bool { return s.in(url, s.part) })
					require.Equal(t, want, documents(t, snapshot), "%s %s %s", interval, set, scope)
					require.NoError(t, snapshot.Close())
				}
			}
		}
	}
}

func TestPredicatesComeBeforeBodies(t *testing.T) {
	a, m := randomArchive(t, 7, 60, Options{})
	read := 0
	s, err := a.Snapshot(Query{Relations: allen.Found, Keep: func(v *Version) bool {
		read++
		require.NotEqual(t, Location{}, v.Content)
		require.Equal(t, "text/html", v.Media)
		return v.Kind == Changed && strings.Contains(v.URL, "b.test")
	}})
	require.NoError(t, err)
	all := naive(m, Query{Relations: allen.Found}, func(string) bool { return true })
	require.Len(t, all, read)
	for doc, err := range s.Documents() {
		require.NoError(t, err)
		require.Equal(t, Changed, doc.Kind)
		require.Contains(t, doc.URL, "b.test")
	}
	require.NoError(t, s.Close())
}

func TestContradictoryQueries(t *testing.T) {
	a, _ := randomArchive(t, 7, 3, Options{})
	_, err := a.Snapshot(Query{Host: "a.test", Prefix: "http://a.test/d"})
	require.ErrorContains(t, err, "more than one")
	s, err := a.Snapshot(Query{From: time.Unix(9, 0), To: time.Unix(3, 0)})
	require.NoError(t, err)
	require.Zero(t, s.Len())
	require.NoError(t, s.Close())
}

// A snapshot of many entries, some of them not yet committed.
func TestLargeSnapshots(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	const urls, each = 70, 320
	for i := range urls {
		key, _ := urlkey.Of(fmt.Sprintf("http://a.test/%d", i))
		for j := range each {
			e := entry{time: int64(j), offset: int64(i*each + j), length: 1, kind: Changed}
			a.index.add("f.warc.gz", key, &e, "", 1)
		}
		if i == urls/2 {
			require.NoError(t, a.index.commit())
		}
	}
	for relations, want := range map[allen.Relations]int{
		allen.Latest: urls, allen.Found: urls * each,
	} {
		s, err := a.Snapshot(Query{Relations: relations, Memory: 100_000})
		require.NoError(t, err)
		require.Equal(t, want, s.Len())
		n, last := 0, int64(-1)
		for v, err := range s.Versions() {
			require.NoError(t, err)
			require.Greater(t, v.Content.Offset, last)
			last = v.Content.Offset
			n++
		}
		require.Equal(t, want, n)
		require.NoError(t, s.Close())
	}
	require.NoError(t, a.Close())
}

// A missing or truncated file affects only its own documents.
func TestDocumentsOfLostFiles(t *testing.T) {
	a, _ := randomArchive(t, 3, 60, Options{MaxFile: 3000})
	s, err := a.Snapshot(Query{Relations: allen.Found, Failed: true})
	require.NoError(t, err)
	names, err := a.Files()
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(a.dir, names[0])))
	require.NoError(t, os.Truncate(filepath.Join(a.dir, names[1]), 700))
	bad := map[string]int{}
	total := 0
	for doc, err := range s.Documents() {
		total++
		switch {
		case err == nil:
			require.NotNil(t, doc.Raw)
		case errors.Is(err, os.ErrNotExist), errors.Is(err, warc.ErrDamaged):
			require.Nil(t, doc.Raw)
			bad[doc.Content.File]++
		default:
			require.NoError(t, err)
		}
	}
	require.Equal(t, s.Len(), total)
	require.Len(t, bad, 2)
	require.NoError(t, s.Close())
}

func TestSnapshotOfAClosedArchive(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	require.NoError(t, a.Close())
	_, err := a.Snapshot(Query{})
	require.ErrorIs(t, err, ErrClosed)
	_, err = a.At("http://a.test/", time.Time{})
	require.ErrorIs(t, err, ErrClosed)
	_, err = a.Append(page("http://a.test/", "x"))
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, a.Close(), "again")
}

// A document without a record is an error, and never io.EOF.
func TestDocumentWithoutARecord(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for name, raw := range map[string][]byte{"an empty member": gzipped(t, nil),
		"blank lines": []byte("\r\n\r\n"), "nothing": {}, "garbage": []byte("garbage")} {
		loc := Location{File: "f.warc.gz", Offset: 77, Length: int64(len(raw))}
		doc := &Document{Version: Version{Content: loc}, Raw: raw, archive: a}
		_, err := doc.Record()
		require.ErrorIs(t, err, warc.ErrDamaged, name)
		require.ErrorContains(t, err, "f.warc.gz: byte 77: ", name)
	}
	require.NoError(t, a.Close())
}
