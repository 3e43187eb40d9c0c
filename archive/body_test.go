package archive

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

func gzipped(t testing.TB, body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestBody(t *testing.T) {
	a, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer a.Close()
	const head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
	text := []byte(strings.Repeat("some text ", 500))
	zipped := gzipped(t, text)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(url, head, truncated string, body []byte) Version {
		start = start.Add(time.Second)
		_, err := a.Append(Capture{URL: url, Time: start, Head: []byte(head), Body: body,
			Truncated: truncated})
		require.NoError(t, err)
		v, err := a.At(url, time.Time{})
		require.NoError(t, err)
		return v
	}
	for range 2 { // the second one is a revisit
		got, err := a.Body(add("http://a.test/", head, "", zipped))
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	got, err := a.Body(add("http://a.test/cut", head, "disconnect", zipped[:len(zipped)-9]))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(text, got))
	_, err = a.Body(add("http://a.test/broken", head, "", zipped[:len(zipped)-9]))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = a.Body(add("http://a.test/bomb", head, "", gzipped(t, make([]byte, 16<<20))))
	require.ErrorIs(t, err, warc.ErrTooLarge)
	none := strings.Replace(head, "gzip", "utf-8", 1) // as many servers send it
	page := add("http://a.test/none", none, "", text)
	got, err = a.Body(page)
	require.NoError(t, err)
	require.Equal(t, text, got)
	resp, err := a.Response(page)
	require.NoError(t, err)
	require.Equal(t, "utf-8", resp.Header.Get("Content-Encoding"))
	require.False(t, resp.Uncompressed)
	require.NoError(t, resp.Body.Close())
	_, err = a.Body(Version{})
	require.ErrorIs(t, err, ErrNotFound)
}

// A body in a file is stored like one in memory.
func TestLarge(t *testing.T) {
	body := []byte(strings.Repeat("a large body ", 1000))
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	_, err = file.Write(append([]byte("before"), append(body, "after"...)...))
	require.NoError(t, err)
	for _, head := range []string{"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"} {
		for _, buffered := range []int{1, maxBuffered} {
			a, err := Open(t.TempDir(), Options{})
			require.NoError(t, err)
			a.files.buffered = buffered
			c := Capture{URL: "http://a.test/", Time: time.Unix(1e9, 0), Head: []byte(head),
				Large: io.NewSectionReader(file, 6, int64(len(body)))}
			_, err = a.Append(c)
			require.NoError(t, err)
			c.Time, c.Large, c.Body = c.Time.Add(time.Second), nil, body
			_, err = a.Append(c)
			require.NoError(t, err)
			versions, err := a.Versions("http://a.test/")
			require.NoError(t, err)
			require.Equal(t, Unchanged, versions[1].Kind, "the digests are equal")
			got, err := a.Body(versions[0])
			require.NoError(t, err)
			require.Equal(t, body, got)
			checked, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
			require.NoError(t, err)
			require.Zero(t, checked.Faults)
			_, err = a.Append(Capture{URL: "http://a.test/", Time: c.Time, Head: c.Head, Body: body,
				Large: io.NewSectionReader(file, 0, 1)})
			require.ErrorIs(t, err, ErrInvalid)
			for _, size := range []int64{-1, int64(len(body)) + 100, math.MaxInt64 - 6} {
				_, err = a.Append(Capture{URL: "http://a.test/", Time: c.Time, Head: c.Head,
					Large: io.NewSectionReader(file, 6, size)})
				require.ErrorIs(t, err, ErrInvalid, "the file is shorter or longer")
			}
			checked, err = a.Verify(t.Context(), func(f Fault) { t.Error(f) })
			require.NoError(t, err)
			require.Zero(t, checked.Faults)
			require.NoError(t, a.Close())
		}
	}
}

// panicking is a body whose nth read panics.
type panicking struct {
	io.ReaderAt
	n int
}

// ReadAt reads from the body.
func (p *panicking) ReadAt(b []byte, off int64) (int, error) {
	if p.n--; p.n == 0 {
		panic("broken")
	}
	return p.ReaderAt.ReadAt(b, off)
}

// A panic while a body is read leaves nothing in the file, so later captures are found.
func TestLargePanics(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{Level: -1})
	require.NoError(t, err)
	a.files.buffered = 1
	body := strings.Repeat("a large body ", 20_000)
	captures := 0
	for n := 1; n < 40; n++ {
		c := Capture{URL: fmt.Sprint("http://a.test/", n), Time: time.Unix(1e9, 0),
			Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Large: io.NewSectionReader(
				&panicking{strings.NewReader(body), n}, 0, int64(len(body)))}
		func() {
			defer func() { _ = recover() }()
			_, err := a.Append(c)
			require.NoError(t, err)
			captures++
		}()
		c.Large, c.Body, c.URL = nil, []byte("small"), fmt.Sprint("http://b.test/", n)
		loc, err := a.Append(c)
		require.NoError(t, err)
		captures++
		rec, err := a.Read(loc)
		require.NoError(t, err)
		require.NoError(t, rec.Close())
	}
	checked, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
	require.NoError(t, err)
	require.Zero(t, checked.Faults)
	require.NoError(t, a.Close())
	a, err = Open(dir, Options{Reindex: true})
	require.NoError(t, err)
	require.Equal(t, captures, a.Recovered().Versions)
	require.Greater(t, captures, 39)
	require.NoError(t, a.Close())
}

// A response of net/http becomes a capture in one line.
func TestFromResponse(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped(t, []byte("hello")))
	}))
	defer s.Close()
	a, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer a.Close()

	resp, err := http.Get(s.URL + "/x#y")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	var c Capture
	c.FromResponse(resp, body)
	_, err = a.Append(c)
	require.NoError(t, err)

	v, err := a.At(s.URL+"/x", time.Time{})
	require.NoError(t, err)
	got, err := a.Body(v)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	rec, err := a.Read(v.Location)
	require.NoError(t, err)
	require.Equal(t, "rebuilt", rec.Get("Spinneret-Heads"))
	require.NoError(t, rec.Close())
	resp.ContentLength = 100
	c.FromResponse(resp, body)
	require.Equal(t, "unspecified", c.Truncated)
}
