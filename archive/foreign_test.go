package archive

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/internal/zdict"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// foreignRecord is a record as another program might write it.
type foreignRecord struct {
	head  warc.Head
	block string
}

// writeForeign writes records into a file in a directory, and returns its path.
func writeForeign(t testing.TB, dir, name string, records ...foreignRecord) string {
	t.Helper()
	enc, err := warc.NewEncoder(warc.EncoderOptions{Level: 1})
	require.NoError(t, err)
	var out bytes.Buffer
	for _, r := range records {
		if r.head.Type == "revisit" && r.head.Profile == "" {
			r.head.Profile = "http://profile.test/"
		}
		_, _, err := enc.Encode(&out, &r.head, []byte(r.block))
		require.NoError(t, err)
	}
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	return path
}

// foreignPage returns a response with a body and its digest.
func foreignPage(url string, at time.Time, status int, text string) foreignRecord {
	sum := sha1.Sum([]byte(text))
	return foreignRecord{warc.Head{Type: "response", TargetURI: url, Date: at, Payload: &sum,
		ContentType: "application/http"}, fmt.Sprintf("HTTP/1.1 %d X\r\n\r\n%s", status, text)}
}

// A URL that another program stored unescaped is found in escaped form, as browsers send it.
func TestRawIRI(t *testing.T) {
	path := writeForeign(t, t.TempDir(), "x.warc.gz",
		foreignPage("http://a.test/h\u00e4user?q=\u00df", someTime, 200, "a page"))
	a := openDir(t, t.TempDir(), Options{})
	_, err := a.Import(path)
	require.NoError(t, err)
	const escaped = "http://a.test/h%C3%A4user?q=%C3%9F"
	for _, url := range []string{escaped, "http://a.test/h\u00e4user?q=\u00df"} {
		v, err := a.At(url, time.Time{})
		require.NoError(t, err, url)
		require.Equal(t, escaped, v.URL)
		require.Equal(t, "a page", body(t, a, v))
	}
	checked, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
	require.NoError(t, errors.Join(err, a.Close()))
	require.EqualValues(t, 1, checked.Versions)
}

// A finished file is final: an unfinished copy of it, for example from a backup, must not replace
// it.
func TestUnfinishedCopyOfAFinishedFile(t *testing.T) {
	for _, name := range []string{"", "other.warc.gz"} {
		dir := t.TempDir()
		own, data, ends := deadFile(t)
		if name == "" {
			name = own
		}
		finished := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(finished, data, 0o644))
		require.NoError(t, os.WriteFile(finished+unfinished, data[:ends[0]], 0o644))
		a := openDir(t, dir, Options{})
		for i := range 3 {
			v, err := a.At(fmt.Sprintf("http://a.test/%d", i), time.Time{})
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("x", 300), body(t, a, v))
		}
		require.NoError(t, a.Close())
		now, err := os.ReadFile(finished)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, now), name)
		require.FileExists(t, finished+unfinished)
	}
}

// A truncated or damaged dictionary makes its file unreadable, but not the archive.
func TestBrokenDictionary(t *testing.T) {
	opts := Options{}
	from := t.TempDir()
	a := openDir(t, from, opts)
	_, err := a.Append(page("http://a.test/", "one"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	file := dictDir(t, from, encoderDict(t))[0]
	whole, err := os.ReadFile(filepath.Join(from, file))
	require.NoError(t, err)
	preface := len(zdict.Append(nil, encoderDict(t)))
	for _, cut := range []int{1, 4, 6, 8, 100, preface - 1, preface, preface + 5} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(path+unfinished, whole[:cut], 0o644))
		a := openDir(t, dir, opts)
		require.NoFileExists(t, path, "cut at %d", cut)
		require.NoFileExists(t, path+unfinished, "cut at %d", cut)
		require.NoError(t, a.Close())
	}
	for _, name := range []string{file, "other.warc.zst", "other.warc.zst.open"} {
		dir := t.TempDir()
		broken := slices.Concat([]byte("\x5d\x2a\x4d\x18\xff\xff\xff\xff"), whole[8:])
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), broken, 0o644))
		a := openDir(t, dir, opts)
		require.NotEmpty(t, a.found.Damage, name)
		faults, _ := verify(t, a)
		require.NotEmpty(t, faults)
		require.ErrorIs(t, faults[0].Err, warc.ErrDamaged)
		_, err := a.Append(page("http://b.test/", "two"))
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
}

// The index entry that Append makes of a capture is the one that Repair makes of its record.
func TestIndexAgreesWithFiles(t *testing.T) {
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name  string
		heads []string
		body  string
	}{
		{"a 304 to an empty body",
			[]string{"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 304 X\r\n\r\n"}, ""},
		{"two transfer codings in two fields", []string{chunked, chunked}, "body"},
		{"a list of codings with an empty last element",
			[]string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n"}, "body"},
		{"a coding with a similar name",
			[]string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: unchunked\r\n\r\n"}, "4\r\nbody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			a := openDir(t, dir, Options{})
			for i, head := range tt.heads {
				c := page("http://a.test/", tt.body)
				c.Time = someTime.Add(time.Duration(i) * time.Hour)
				c.Head = []byte(head)
				if i > 0 && strings.Contains(head, "304") {
					c.Body = nil
				}
				_, err := a.Append(c)
				require.NoError(t, err)
			}
			faults, _ := verify(t, a)
			require.Empty(t, faults)
			v, err := a.At("http://a.test/", time.Time{})
			require.NoError(t, err)
			require.Equal(t, tt.body, body(t, a, v))
			require.NoError(t, a.Close())
			requireRebuilt(t, dir, Options{})
		})
	}
}

// Append refuses a head that is too long for the reader.
func TestHeadTooLongForReader(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	defer a.Close()
	for size, valid := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		c := page(fmt.Sprintf("http://a.test/%d", size), "body")
		const begin, end = "HTTP/1.1 200 OK\r\nA: ", "\r\n\r\n"
		c.Head = []byte(begin + strings.Repeat("x", size-len(begin+end)) + end)
		_, err := a.Append(c)
		if !valid {
			require.ErrorIs(t, err, ErrInvalid)
			continue
		}
		require.NoError(t, err)
		v, err := a.At(c.URL, time.Time{})
		require.NoError(t, err)
		require.Equal(t, "body", body(t, a, v))
	}
}

// Append refuses a head that is too long for the reader only in the form in which it is stored.
func TestHeadThatBecomesTooLong(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for _, begin := range []string{"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nA: ", "HTTP/2 200\r\nA: "} {
		c := page("http://a.test/", "body")
		c.Head = []byte(begin + strings.Repeat("x", maxHead-len(begin)-4) + "\r\n\r\n")
		_, err := a.Append(c)
		require.ErrorIs(t, err, ErrInvalid)
	}
	c := page("http://a.test/", "body")
	c.Request = []byte("GET / HTTP/1.1\r\nCookie: a\r\nA: ")
	c.Request = append(c.Request, strings.Repeat("x", maxHead-len(c.Request)-4)+"\r\n\r\n"...)
	_, err := a.Append(c)
	require.ErrorIs(t, err, ErrInvalid)
	faults, _ := verify(t, a)
	require.Empty(t, faults)
}

// A revisit that refers to another URL has the body with its digest, even if that URL has several
// versions in the same second.
func TestRevisitOfOneOfSeveralVersions(t *testing.T) {
	second := someTime.Truncate(time.Second)
	revisit := func(url, text string) foreignRecord {
		r := foreignPage(url, second.Add(time.Hour), 200, text)
		r.head.Type, r.head.Profile = "revisit", warc.ProfileIdentical
		r.head.RefersToURI, r.head.RefersToDate = "http://a.test/", second
		r.block = "HTTP/1.1 200 X\r\n\r\n"
		return r
	}
	unknown := revisit("http://d.test/", "")
	unknown.head.Payload = nil
	dir := t.TempDir()
	truncated := foreignPage("http://a.test/", second, 200, "one")
	truncated.head.Truncated = "length"
	writeForeign(t, dir, "x.warc.gz", truncated,
		foreignPage("http://a.test/", second.Add(time.Millisecond), 200, "two"),
		foreignPage("http://a.test/", second.Add(2*time.Millisecond), 404, "gone"),
		revisit("http://b.test/", "one"), revisit("http://c.test/", "two"), unknown)
	a := openDir(t, dir, Options{})
	want := map[string]string{"http://b.test/": "one", "http://c.test/": "two",
		"http://d.test/": "two"}
	for url, text := range want {
		v, err := a.At(url, time.Time{})
		require.NoError(t, err)
		require.Equal(t, text, body(t, a, v), url)
		require.Equal(t, text == "one", v.Truncated, url)
	}
	s, err := a.Snapshot(Query{})
	require.NoError(t, err)
	n := 0
	for v, err := range s.Versions() {
		require.NoError(t, err)
		n++
		require.Equal(t, want[v.URL], body(t, a, v), v.URL)
		require.Equal(t, want[v.URL] == "one", v.Truncated, v.URL)
	}
	require.Equal(t, len(want), n)
	require.NoError(t, s.Close())
	require.NoError(t, a.Close())
}

// A program that is still writing leaves a partial record at the end of its file, and completes it
// later.
func TestImportOfAFileBeingWritten(t *testing.T) {
	for _, c := range []warc.Compression{warc.Gzip, warc.None, warc.Zstd} {
		o := warc.EncoderOptions{Compression: c}
		path := foreignFile(t, "x.warc", o, "one", "two", "three")
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for at := 0; at <= len(whole); at += 1 + len(whole)/25 {
			require.NoError(t, os.WriteFile(path, whole[:at], 0o644))
			a := openDir(t, t.TempDir(), Options{})
			if _, err := a.Import(path); err != nil {
				require.ErrorIs(t, err, warc.ErrDamaged, "only an unreadable file is an error")
			}
			require.NoError(t, os.WriteFile(path, whole, 0o644))
			_, err := a.Import(path)
			require.NoError(t, err)
			requireForeign(t, a, path, "one", "two", "three")
			faults, checked := verify(t, a)
			require.Empty(t, faults, "cut at %d", at)
			require.EqualValues(t, 3, checked.Versions)
			require.NoError(t, a.Close())
		}
	}
}

// A pipe has no size, and opening one blocks until there is a writer.
func TestImportOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.CommandContext(t.Context(), "mkfifo", pipe).Run(); err != nil {
		t.Skip("no mkfifo")
	}
	a := openDir(t, t.TempDir(), Options{})
	_, err := a.Import(pipe)
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, a.Close())
}

// heap returns the bytes of live objects.
func heap() uint64 {
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc
}

// A pending index entry does not keep the header of its record in memory.
func TestPendingEntriesAreSmall(t *testing.T) {
	const n, size = 40, 900_000
	var records []foreignRecord
	for i := range n {
		records = append(records, foreignRecord{warc.Head{Type: "resource", Date: someTime,
			TargetURI: fmt.Sprintf("urn:%d", i), ContentType: "application/x-own",
			Extra: []warc.Field{{Name: "A", Value: strings.Repeat("x", size)}}}, "x"})
	}
	path := writeForeign(t, t.TempDir(), "x.warc.gz", records...)
	records = nil
	a := openDir(t, t.TempDir(), Options{})
	before := heap()
	f, err := openImported(path)
	require.NoError(t, err)
	found, err := a.indexFile(f, path, 0, f.size)
	require.NoError(t, errors.Join(err, f.Close()))
	require.Equal(t, n, found.Versions)
	waiting, _ := a.index.lsm().Waiting()
	require.Equal(t, n, waiting)
	require.Less(t, heap(), before+n*size/3)
	require.NoError(t, a.Close())
}

// URLs that are too long for their keys count towards the limit of pending bytes.
func TestPendingLongURLs(t *testing.T) {
	x := openTestIndex(t, vfs.NewMem())
	x.closed = true // nothing is committed
	url := strings.Repeat("x", maxURL)
	for i := range maxPendingBytes / maxURL {
		require.False(t, x.fullLocked())
		e := entry{time: int64(i), length: 1, kind: Changed, url: url}
		x.add(fmt.Sprintf("%d.warc.gz", i%2), fmt.Sprint("key ", i%9), &e, "", 1)
	}
	require.True(t, x.fullLocked())
	require.NoError(t, x.close(false))
}

// A time outside the valid range is before or after all versions.
func TestTimesOutsideTheRange(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	_, err := a.Append(page("http://a.test/", "one"))
	require.NoError(t, err)
	for _, late := range []time.Time{time.Unix(1<<40, 0), time.Unix(math.MaxInt64-62135596801, 0)} {
		v, err := a.At("http://a.test/", late)
		require.NoError(t, err)
		require.Equal(t, "one", body(t, a, v))
		s, err := a.Snapshot(Query{To: late})
		require.NoError(t, err)
		require.Equal(t, 1, s.Len())
		require.NoError(t, s.Close())
		s, err = a.Snapshot(Query{From: late})
		require.NoError(t, err)
		require.Zero(t, s.Len())
		require.NoError(t, s.Close())
	}
	early := time.Unix(-1<<60, 0)
	_, err = a.At("http://a.test/", early)
	require.ErrorIs(t, err, ErrNotFound)
	s, err := a.Snapshot(Query{From: early})
	require.NoError(t, err)
	require.Equal(t, 1, s.Len())
	require.NoError(t, s.Close())
	require.NoError(t, a.Close())
}

// A date that JSON cannot represent does not abort a scan.
func TestDateOutsideJSON(t *testing.T) {
	dir := t.TempDir()
	record := "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: urn:x\r\n" +
		"WARC-Date: 9999-12-31T23:30:00-01:00\r\nContent-Length: 1\r\n\r\nx\r\n\r\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.warc"), []byte(record), 0o644))
	a := openDir(t, dir, Options{})
	_, err := a.Append(page("http://a.test/", "one"))
	require.NoError(t, err)
	s, err := a.Snapshot(Query{})
	require.NoError(t, err)
	n := 0
	work := scan.Func(func(*scan.Document) ([]byte, error) { return nil, nil })
	for _, err := range s.Scan(t.Context(), work, scan.Options{}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n)
	require.NoError(t, s.Close())
	require.NoError(t, a.Close())
}

// A long URL is normalized like all others, and its spellings are versions of one URL.
func TestLongURLsAreNormalized(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	want := "http://a.test/" + strings.Repeat("x", 1000)
	upper := "HTTP://u:p@A.test:80/" + want[len("http://a.test/"):]
	for i, url := range []string{want + "#one", upper, want} {
		at := someTime.Add(time.Duration(i) * time.Hour)
		_, err := a.Append(visit{url, at, 200, fmt.Sprint(i)}.capture())
		require.NoError(t, err)
	}
	versions, err := a.Versions(want)
	require.NoError(t, err)
	require.Len(t, versions, 3)
	i := 0
	for v, err := range a.All() {
		require.NoError(t, err)
		require.Equal(t, want, v.URL)
		require.Equal(t, versions[i].Until, v.Until)
		i++
	}
	require.Equal(t, 3, i)
	faults, _ := verify(t, a)
	require.Empty(t, faults)
	require.NoError(t, a.Close())
}

// The first segment of a segmented record (WARC 1.1, section 7) is a truncated body.
func TestSegmentIsTruncated(t *testing.T) {
	r := foreignPage("http://a.test/", someTime, 200, "the first par")
	r.head.Extra = []warc.Field{{Name: "WARC-Segment-Number", Value: "1"}}
	dir := t.TempDir()
	writeForeign(t, dir, "x.warc.gz", r)
	a := openDir(t, dir, Options{})
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	require.True(t, v.Truncated)
	require.NoError(t, a.Close())
}

// Different hosts with invalid UTF-8 have different keys.
func TestHostsWithInvalidUTF8(t *testing.T) {
	one, _ := urlkey.Of("http://\x80.test/")
	two, _ := urlkey.Of("http://\x81.test/")
	require.NotEqual(t, one, two)
	require.Equal(t, "http://\x80.test/", urlkey.URL(one))
}

// Files with the same dictionary share it in memory.
func TestFilesShareADictionary(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{MaxFile: 1})
	for i := range 3 {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), "body"))
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	names := dictDir(t, dir, encoderDict(t))
	require.Len(t, names, 3)
	a = openDir(t, dir, Options{})
	var first []byte
	for _, name := range names {
		dict, err := a.dict(name)
		require.NoError(t, err)
		if first == nil {
			first = dict
		}
		require.Same(t, &first[0], &dict[0])
	}
	require.NoError(t, a.Close())
}

// Versions and Snapshot resolve the contents of unchanged versions like At.
func TestVersionsAreResolvedLikeAt(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 5))
	var records []foreignRecord
	for i := range 150 {
		rec := foreignPage("http://a.test/", someTime.Add(time.Duration(i)*time.Minute),
			[]int{200, 200, 404}[r.IntN(3)], fmt.Sprint(r.IntN(4)))
		switch r.IntN(4) {
		case 0:
			rec.head.Type, rec.block = "revisit", "HTTP/1.1 200 X\r\n\r\n"
		case 1:
			rec.head.Type, rec.head.Payload, rec.block = "revisit", nil, "HTTP/1.1 304 X\r\n\r\n"
		}
		records = append(records, rec)
	}
	writeForeign(t, dir, "x.warc.gz", records...)
	a := openDir(t, dir, Options{})
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	require.Len(t, versions, len(records))
	found := map[Location]Version{}
	s, err := a.Snapshot(Query{Relations: allen.Found, Failed: true})
	require.NoError(t, err)
	for v, err := range s.Versions() {
		require.NoError(t, err)
		found[v.Location] = v
	}
	require.NoError(t, s.Close())
	for _, v := range versions {
		got, err := a.At(v.URL, v.Time)
		require.NoError(t, err)
		require.Equal(t, v, got)
		if v.Content != (Location{}) {
			require.Equal(t, v, found[v.Location], "in a snapshot")
		} else {
			require.NotContains(t, found, v.Location)
		}
	}
	require.NoError(t, a.Close())
}
