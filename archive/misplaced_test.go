package archive

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// twins returns an archive of two files that have records of the same lengths at the same offsets.
func twins(t *testing.T, opts Options) (disk *vfs.Mem, names []string) {
	t.Helper()
	disk, names = vfs.NewMem(), nil
	opts.MaxFile = 1
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	for _, name := range []string{"one", "two"} {
		loc, err := a.Append(Capture{URL: "http://a.test/" + name, Time: someTime,
			Request: []byte("POST / HTTP/1.1\r\n\r\n"),
			Head:    []byte("HTTP/1.1 200 " + name + "\r\n\r\n"), Body: []byte("body of " + name)})
		require.NoError(t, err)
		names = append(names, loc.File)
	}
	require.NoError(t, a.Close())
	if len(disk.Data(names[0])) != len(disk.Data(names[1])) { // IDs are compressed, too
		return twins(t, opts)
	}
	return disk, names
}

// A disk returns another block than it was asked for, or a backup has put one file in the place of another:
// all sums are right, but the records are others. They are never served, and a new index has none of them.
func TestRecordsInThePlaceOfOthers(t *testing.T) {
	for name, opts := range map[string]Options{"gzip": {Level: -1}, "zstd": {Compression: warc.Zstd}} {
		t.Run(name, func(t *testing.T) {
			disk, names := twins(t, opts)
			disk.Put(names[0], disk.Data(names[1]))
			a, err := OpenOn(disk, opts)
			require.NoError(t, err)
			versions, err := a.Answers("http://a.test/one", "POST", "")
			require.NoError(t, err)
			require.Len(t, versions, 1)
			requireUnreadable(t, a, versions[0])
			require.NoError(t, a.Close())

			report, err := RepairOn(disk, opts)
			require.NoError(t, err)
			require.NotEmpty(t, report.Damage)
			require.Equal(t, names[0], report.Damage[0].File)
			a, err = OpenOn(disk, opts)
			require.NoError(t, err)
			n := 0
			for v, err := range a.All() {
				require.NoError(t, err)
				require.Equal(t, names[1], v.Location.File)
				n++
			}
			require.Equal(t, 1, n)
			require.NoError(t, a.Close())
		})
	}
}

func requireUnreadable(t *testing.T, a *Archive, v Version) {
	t.Helper()
	_, err := a.Body(v)
	require.ErrorIs(t, err, warc.ErrDamaged)
	_, err = a.Response(v)
	require.ErrorIs(t, err, warc.ErrDamaged)
	_, err = a.Content(v)
	require.ErrorIs(t, err, warc.ErrDamaged)
	_, _, err = a.Validators(v)
	require.ErrorIs(t, err, warc.ErrDamaged)
	if v.Request != (Location{}) {
		_, err = a.Read(v.Request)
		require.ErrorIs(t, err, warc.ErrDamaged)
	}
}

// The same within one file, whose records all have its ID.
func TestRecordsOfAFileThatMoved(t *testing.T) {
	disk := vfs.NewMem()
	a, err := OpenOn(disk, Options{Level: -1})
	require.NoError(t, err)
	var at []Location
	for _, name := range []string{"one", "two", "one", "six"} {
		c := page("http://a.test/"+name, "body of "+name)
		c.Request, c.Time = nil, someTime.Add(time.Duration(len(at))*time.Hour)
		loc, err := a.Append(c)
		require.NoError(t, err)
		at = append(at, loc)
	}
	require.Equal(t, at[0].Length, at[1].Length)
	require.NoError(t, a.Close())
	data := disk.Data(at[0].File)
	copy(data[at[0].Offset:], data[at[1].Offset:at[1].Offset+at[1].Length])
	disk.Put(at[0].File, data)
	a, err = OpenOn(disk, Options{})
	require.NoError(t, err)
	v, err := a.At("http://a.test/one", someTime)
	require.NoError(t, err)
	requireUnreadable(t, a, v)
	v, err = a.At("http://a.test/one", time.Time{}) // unchanged, and its own record is sound
	require.NoError(t, err)
	require.Equal(t, Unchanged, v.Kind)
	requireNoBody(t, a, v)

	_, err = exec.LookPath("cat")
	require.NoError(t, err)
	s, err := a.Snapshot(Query{})
	require.NoError(t, err)
	defer s.Close()
	found := map[string]string{}
	for result, err := range s.Scan(t.Context(), scan.Filter("cat"), scan.Options{}) {
		require.NoError(t, err)
		found[result.Value.(Version).URL] = string(result.Out)
		require.Equal(t, strings.HasSuffix(result.Value.(Version).URL, "one"), result.Err != nil)
	}
	require.Equal(t, map[string]string{"http://a.test/one": "", "http://a.test/two": "body of two",
		"http://a.test/six": "body of six"}, found)
	for doc, err := range s.Documents() {
		require.NoError(t, err)
		rec, err := doc.Record()
		if strings.HasSuffix(doc.URL, "one") {
			require.ErrorIs(t, err, warc.ErrDamaged)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, rec.Close())
	}
	require.NoError(t, a.Close())
}

func requireNoBody(t *testing.T, a *Archive, v Version) {
	t.Helper()
	_, err := a.Body(v)
	require.ErrorIs(t, err, warc.ErrDamaged)
	resp, err := a.Response(v)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	require.ErrorIs(t, err, warc.ErrDamaged)
}

// The record with the body is lost. What repeats it is listed, and has no body: not an empty one. Only a
// 304, which had none, is answered as it came.
func TestMissingBodyIsNotEmpty(t *testing.T) {
	disk := vfs.NewMem()
	opts := Options{Level: -1}
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	first, err := a.Append(visit{"http://a.test/", someTime, 200, "text"}.capture())
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "text", 1))
	_, err = a.Append(visit{"http://a.test/", someTime.Add(2 * time.Hour), 304, ""}.capture())
	require.NoError(t, err)
	require.NoError(t, a.Close())
	disk.Flip(first.File, first.Offset+first.Length-5, 0)
	report, err := RepairOn(disk, opts)
	require.NoError(t, err)
	require.Len(t, report.Damage, 1)
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	require.Len(t, versions, 2)
	for _, v := range versions {
		_, err := a.Body(v)
		require.ErrorIs(t, err, ErrNotFound)
		resp, err := a.Response(v)
		if v.Status != http.StatusNotModified {
			require.ErrorIs(t, err, ErrNotFound)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, http.StatusNotModified, resp.StatusCode)
	}
	faults := 0
	_, err = a.Verify(t.Context(), func(f Fault) {
		if f.Err == errReference {
			faults++
		}
	})
	require.NoError(t, err)
	require.Equal(t, 2, faults)
	require.NoError(t, a.Close())
}

// Visits of one URL follow each other in a file, and one of them has no request, or damage has taken it.
// A new index does not give it the request of its neighbor, and a form's answer does not become the page.
func TestNeighborsKeepTheirRequests(t *testing.T) {
	form := func(hours int) Capture {
		c := visit{"http://a.test/", someTime.Add(time.Duration(hours) * time.Hour), 200, "an answer"}.capture()
		c.Request = []byte("POST / HTTP/1.1\r\n\r\nform")
		return c
	}
	disk := vfs.NewMem()
	opts := Options{Level: -1}
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	plain := visit{"http://a.test/", someTime, 200, "the page"}.capture()
	plain.Request = nil
	_, err = a.Append(plain)
	require.NoError(t, err)
	posted, err := a.Append(form(1))
	require.NoError(t, err)
	check := func(requests int) {
		t.Helper()
		pages, err := a.Versions("http://a.test/")
		require.NoError(t, err)
		require.Len(t, pages, 1)
		require.Equal(t, "the page", body(t, a, pages[0]))
		forms, err := a.Answers("http://a.test/", "POST", "")
		require.NoError(t, err)
		require.Len(t, forms, 1)
		require.Equal(t, "an answer", body(t, a, forms[0]))
		require.Equal(t, requests == 1, forms[0].Request != Location{})
	}
	check(1)
	request, err := a.Answers("http://a.test/", "POST", "")
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = RepairOn(disk, opts)
	require.NoError(t, err)
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	check(1)
	require.NoError(t, a.Close())

	broken := disk.Clone()
	broken.Flip(posted.File, request[0].Request.Offset+100, 3)
	_, err = RepairOn(broken, opts)
	require.NoError(t, err)
	a, err = OpenOn(broken, opts)
	require.NoError(t, err)
	check(0)
	require.NoError(t, a.Close())

	// The page is erased, and the request of the form stays.
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{URL: "http://a.test/", To: someTime.Add(time.Minute)}, "asked for")
	require.NoError(t, err)
	rec, err := a.Read(request[0].Request)
	require.NoError(t, err)
	require.Equal(t, "request", rec.Type())
	require.NoError(t, rec.Close())
	require.NoError(t, a.Close())
}
