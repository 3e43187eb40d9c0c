package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// answer is a request and the response to it.
type answer struct {
	method, byteRange string
	status            int
	body              string
}

// answers have something between two versions of a page that must not be taken for one.
var answers = []answer{
	{"GET", "", 200, "the page"},
	{"HEAD", "", 200, ""},
	{"POST", "", 200, "the answer to a form"},
	{"OPTIONS", "", 204, ""},
	{"GET", "bytes=0-2", 206, "the"},
	{"GET", "bytes=99-", 416, ""},
	{"GET", "bytes=0-99", 200, "the page"}, // the server ignores ranges
	{"HEAD", "", 200, ""},
	{"GET", "", 200, "another page"},
	{"GET", "bytes=0-1", 206, "an"},
	{"PURGE", "", 405, "no"},
}

func (a answer) capture(n int) Capture {
	request := a.method + " / HTTP/1.1\r\nHost: a.test\r\n"
	if a.byteRange != "" {
		request += "Range: " + a.byteRange + "\r\n"
	}
	head := fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Type: text/plain\r\n", a.status)
	return Capture{URL: "http://a.test/", Time: time.Unix(int64(1000+n), 0),
		Request: []byte(request + "\r\nRange: bytes=in-the-body\r\n"), Head: []byte(head + "\r\n"),
		Body: []byte(a.body)}
}

// What a reader gets by default is the answer to a plain GET, however a URL was asked since. All
// versions are kept, and found by what was asked.
func TestAnswersToOtherRequests(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	for i, one := range answers {
		_, err := a.Append(one.capture(i))
		require.NoError(t, err)
	}
	requireAnswers(t, a)
	require.NoError(t, a.Close())
	a = openDir(t, dir, Options{Reindex: true})
	requireAnswers(t, a)
	require.NoError(t, a.Close())
}

func requireAnswers(t *testing.T, a *Archive) {
	t.Helper()
	bodies := func(versions []Version, err error) (list []string) {
		require.NoError(t, err)
		for _, v := range versions {
			body, err := a.Body(v)
			require.NoError(t, err)
			list = append(list, string(body))
		}
		return list
	}
	const url = "http://a.test/"
	for _, at := range []int64{1000, 1003, 1005, 1007} {
		v, err := a.At(url, time.Unix(at, 0))
		require.NoError(t, err)
		require.Equal(t, []string{"the page"}, bodies([]Version{v}, nil), at)
		require.Equal(t, "GET", v.Method)
	}
	last, err := a.At(url, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []string{"another page"}, bodies([]Version{last}, nil))
	require.Zero(t, last.Until)
	require.Equal(t, []string{"the page", "the page", "another page"}, bodies(a.Versions(url)))
	require.Equal(t, []string{"", ""}, bodies(a.Answers(url, "HEAD", "")))
	require.Equal(t, []string{"the answer to a form"}, bodies(a.Answers(url, "POST", "")))
	require.Equal(t, []string{"the"}, bodies(a.Answers(url, "GET", "bytes=0-2")))
	require.Empty(t, bodies(a.Answers(url, "POST", "bytes=0-2")))

	var all []string
	for v, err := range a.All() {
		require.NoError(t, err)
		require.Equal(t, url, v.URL)
		all = append(all, strings.TrimSpace(v.Method+" "+v.Range))
	}
	slices.Sort(all)
	require.Equal(t, []string{"GET", "GET", "GET", "GET bytes=0-1", "GET bytes=0-2",
		"GET bytes=99-", "HEAD", "HEAD", "OPTIONS", "POST", "PURGE"}, all)

	s, err := a.Snapshot(Query{Failed: true})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, 1, s.Len())
	checked, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
	require.NoError(t, err)
	require.Equal(t, len(answers), checked.Versions)
}

// In files of other programs a request may follow its response, or be missing. A part is then known
// by its own head.
func TestAnswersInForeignFiles(t *testing.T) {
	for _, order := range []string{"request response", "response request", "response"} {
		t.Run(order, func(t *testing.T) {
			dir := t.TempDir()
			var file bytes.Buffer
			for i, one := range answers {
				c := one.capture(i)
				if order == "response" && one.status != 206 && one.method != "GET" {
					continue // it cannot be distinguished
				}
				if one.status == 206 {
					c.Head = []byte("HTTP/1.1 206 x\r\nContent-Range: bytes 0-1/9\r\n\r\n")
				}
				for kind := range strings.FieldsSeq(order) {
					writePart(t, &file, kind, &c)
				}
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x.warc.gz"), file.Bytes(), 0o600))
			a := openDir(t, dir, Options{})
			v, err := a.At("http://a.test/", time.Time{})
			require.NoError(t, err)
			body, err := a.Body(v)
			require.NoError(t, err)
			require.Equal(t, "another page", string(body))
			if order == "response" {
				parts, err := a.Answers("http://a.test/", "GET", "bytes=0-1")
				require.NoError(t, err)
				require.Len(t, parts, 2)
				return
			}
			heads, err := a.Answers("http://a.test/", "HEAD", "")
			require.NoError(t, err)
			require.Len(t, heads, 2)
			require.NotZero(t, heads[0].Request)
			rec, err := a.Read(heads[1].Request)
			require.NoError(t, err)
			require.Equal(t, "request", rec.Type())
			require.NoError(t, rec.Close())
			checked, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
			require.NoError(t, err)
			require.Equal(t, len(answers), checked.Versions)
		})
	}
}

// writePart writes one record of a capture as other programs do.
func writePart(t *testing.T, w *bytes.Buffer, kind string, c *Capture) {
	t.Helper()
	e, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	h := warc.Head{Type: kind, ID: warc.NewID(), Date: c.Time, TargetURI: c.URL,
		ContentType: "application/http; msgtype=" + kind}
	block := c.Request
	if kind == "response" {
		block = append(bytes.Clone(c.Head), c.Body...)
	}
	_, _, err = e.Encode(w, &h, block)
	require.NoError(t, err)
}

// A repeated answer is stored as a revisit of the same kind of answer, also if the page has the
// same body, and the body is found again by a new index.
func TestRepeatedAnswersToOtherRequests(t *testing.T) {
	same := strings.Repeat("the same body ", 200)
	for i := range 4 {
		share, methods := i%2 == 0, []string{"POST", "GET", "POST", "POST", "GET", "HEAD"}
		if i > 1 {
			methods = []string{"GET", "POST", "GET", "POST", "HEAD", "POST"}
		}
		dir := t.TempDir()
		a := openDir(t, dir, Options{Share: share})
		for i, method := range methods {
			one := answer{method: method, status: 200, body: same}
			if method == "HEAD" {
				one.body = ""
			}
			_, err := a.Append(one.capture(i))
			require.NoError(t, err)
		}
		for range 2 {
			for method, n := range map[string]int{"POST": 3, "GET": 2} {
				versions, err := a.Answers("http://a.test/", method, "")
				require.NoError(t, err)
				require.Len(t, versions, n)
				for i, v := range versions {
					require.Equal(t, i > 0, v.Kind == Unchanged, "%s %d", method, i)
					body, err := a.Body(v)
					require.NoError(t, err, "%s %d", method, i)
					require.Equal(t, same, string(body))
				}
			}
			require.NoError(t, a.Close())
			a = openDir(t, dir, Options{Reindex: true, Share: share})
		}
		require.NoError(t, a.Close())
	}
}

// A file of another program is read while it is written. A request whose response is missing is read again.
// If it is the request that is missing, the response counts as one to GET, which Verify reports once the
// request is there.
func TestFileThatEndsWithinACapture(t *testing.T) {
	for order, faulty := range map[string]bool{"request response": false, "response request": true} {
		dir := t.TempDir()
		c := page("http://a.test/", "the answer to a form")
		c.Request = []byte("POST / HTTP/1.1\r\n\r\nform")
		var file bytes.Buffer
		for kind := range strings.FieldsSeq(order) {
			writePart(t, &file, kind, &c)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x.warc.gz"), file.Bytes(), 0o600))
			for range 2 { // it stays as it is for a while
				a := openDir(t, dir, Options{})
				faults, _ := verify(t, a)
				require.Equal(t, faulty && kind == "request", len(faults) > 0, "%s: %+v", kind, faults)
				require.NoError(t, a.Close())
			}
		}
		for _, opts := range []Options{{}, {Reindex: true}} {
			a := openDir(t, dir, opts)
			answers, err := a.Answers("http://a.test/", "POST", "")
			require.NoError(t, err)
			require.Equal(t, faulty && !opts.Reindex, len(answers) == 0, order)
			faults, _ := verify(t, a)
			require.Equal(t, faulty && !opts.Reindex, len(faults) > 0, order)
			require.NoError(t, a.Close())
		}
	}
}

// The parts of a video are thousands of ranges of one URL. Verify looks each up by what was asked.
func TestVerifyOfManyRanges(t *testing.T) {
	reads := map[int]int64{}
	for _, n := range []int{250, 1000} {
		disk := &readCounter{Mem: vfs.NewMem()}
		a, err := OpenOn(disk, Options{Compressors: 1, Level: -1})
		require.NoError(t, err)
		for i := range n {
			c := page("http://a.test/video", "part")
			c.Request = fmt.Appendf(nil, "GET /video HTTP/1.1\r\nRange: bytes=%d-%d\r\n\r\n", 4*i, 4*i+3)
			c.Head = fmt.Appendf(nil, "HTTP/1.1 206 x\r\nContent-Range: bytes %d-%d/99999\r\n\r\n", 4*i, 4*i+3)
			_, err := a.Append(c)
			require.NoError(t, err)
		}
		require.NoError(t, a.Commit())
		disk.reads.Store(0)
		faults, checked := verify(t, a)
		require.Empty(t, faults)
		require.Equal(t, n, checked.Versions)
		reads[n] = disk.reads.Load()
		require.NoError(t, a.Close())
	}
	require.Less(t, reads[1000], 8*reads[250])
}
