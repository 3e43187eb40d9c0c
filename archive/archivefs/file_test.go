package archivefs

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// packed returns a text encoded with a content coding.
func packed(t testing.TB, coding, text string) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "zstd":
		zs, err := zstd.NewWriter(&out)
		require.NoError(t, err)
		w = zs
	case "br":
		w = brotli.NewWriter(&out)
	default:
		return []byte(text)
	}
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestContentCodings(t *testing.T) {
	text := strings.Repeat("some text, ", 5000)
	tests := []struct {
		name, field string
		chunked     bool
		body, want  string
	}{
		{"none", "", false, text, text},
		{"chunked", "", true, text, text},
		{"gzip", "gzip", false, string(packed(t, "gzip", text)), text},
		{"gzip, chunked", "GZIP", true, string(packed(t, "gzip", text)), text},
		{"gzip with its old name", "x-gzip", false, string(packed(t, "gzip", text)), text},
		{"deflate", "deflate", false, string(packed(t, "deflate", text)), text},
		{"zstd", "zstd", true, string(packed(t, "zstd", text)), text},
		{"falsely declared as gzip", "gzip", false, text, text},
		{"falsely declared as zstd", "zstd", false, "x", "x"},
		{"brotli", "br", false, string(packed(t, "br", text)), text},
		{"two codings", "zstd, gzip", false,
			string(packed(t, "gzip", string(packed(t, "zstd", text)))), text},
		{"an empty body", "gzip", false, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := openDir(t, t.TempDir())
			c := archive.Capture{URL: "http://a.test/b", Time: someTime, Body: []byte(tt.body)}
			head := "HTTP/1.1 200 OK\r\n"
			if tt.field != "" {
				head += "Content-Encoding: " + tt.field + "\r\n"
			}
			if tt.chunked {
				head += "Transfer-Encoding: chunked\r\n"
			}
			c.Head = []byte(head + "\r\n")
			_, err := a.Append(c)
			require.NoError(t, err)
			files := tree(t, New(a, "", time.Time{}))
			require.Equal(t, map[string]string{"a.test/b": tt.want}, files)
			require.NoError(t, fstest.TestFS(New(a, "", time.Time{}), "a.test/b"))
			require.NoError(t, a.Close())
		})
	}
}

// A body truncated by the crawler is read without an error; any other incomplete body returns one.
func TestIncompleteBodies(t *testing.T) {
	whole := packed(t, "gzip", strings.Repeat("some text, ", 100)+fmt.Sprint(rand.Perm(5000)))
	for _, truncated := range []string{"length", ""} {
		a := openDir(t, t.TempDir())
		c := archive.Capture{URL: "http://a.test/b", Time: someTime, Body: whole[:len(whole)/2],
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"), Truncated: truncated}
		_, err := a.Append(c)
		require.NoError(t, err)
		data, err := fs.ReadFile(New(a, "", time.Time{}), "a.test/b")
		require.Contains(t, string(data), "some text, some text")
		if truncated != "" {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			_, err = New(a, "", time.Time{}).Stat("a.test/b")
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the size is unknown")
		}
		require.NoError(t, a.Close())
	}
}

func TestMissingWARC(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir)
	visit{"http://a.test/b", someTime, 200, "b"}.into(t, a)
	require.NoError(t, a.Sync())
	names, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	require.NoError(t, err)
	lost := filepath.Join(t.TempDir(), "lost")
	require.NoError(t, os.Rename(names[0], lost))
	fsys := New(a, "", time.Time{})
	entries, err := fsys.ReadDir("a.test")
	require.NoError(t, err, "the index has the page")
	require.Len(t, entries, 1)
	_, err = entries[0].Info()
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = fsys.Open("a.test/b")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = fsys.Stat("a.test/b")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Rename(lost, names[0]))
	require.NoError(t, a.Close())
}

func TestClosedFiles(t *testing.T) {
	f, err := New(siteOf(t, "http://a.test/b"), "", time.Time{}).Open("a.test/b")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.(io.Seeker).Seek(0, io.SeekStart)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Stat()
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
}

// A long directory is read in pieces, and an append between them does not affect it.
func TestLongDirectory(t *testing.T) {
	var urls []string
	for i := range 300 {
		urls = append(urls, fmt.Sprintf("http://a.test/%03d", i))
	}
	a := siteOf(t, urls...)
	f, err := New(a, "", time.Time{}).Open("a.test")
	require.NoError(t, err)
	dir := f.(fs.ReadDirFile)
	n := 0
	for {
		entries, err := dir.ReadDir(7)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), 7)
		for _, e := range entries {
			require.Equal(t, fmt.Sprintf("%03d", n), e.Name())
			n++
		}
		if n == 14 { // a page that was already listed disappears
			visit{"http://a.test/000", someTime.Add(time.Second), 404, ""}.into(t, a)
		}
	}
	require.Equal(t, 300, n)
	rest, err := dir.ReadDir(-1)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, dir.Close())
}

// Revisits of other URLs and resources are files too, also in WARC files of other programs.
func TestFilesOfForeignRecords(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	enc, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	head := []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, rec := range []struct {
		h     warc.Head
		block string
	}{
		{warc.Head{Type: "response", TargetURI: "http://a.test/1", ContentType: "application/http"},
			string(head) + "3\r\none\r\n2\r\n, \r\n3\r\ntwo\r\n0\r\n\r\n"},
		{warc.Head{Type: "revisit", TargetURI: "http://a.test/2", RefersToURI: "http://a.test/1",
			RefersToDate: someTime, ContentType: "application/http"}, string(head)},
		{warc.Head{Type: "revisit", TargetURI: "http://a.test/3", RefersToURI: "http://lost.test/",
			RefersToDate: someTime, ContentType: "application/http"}, string(head)},
		{warc.Head{Type: "resource", TargetURI: "http://a.test/4", ContentType: "text/plain"},
			"four"},
		{warc.Head{Type: "metadata", TargetURI: "http://a.test/5", ContentType: "text/plain"},
			"five"},
	} {
		rec.h.Date = someTime
		if rec.h.Type == "revisit" {
			rec.h.Profile = warc.ProfileIdentical
		}
		_, _, err := enc.Encode(&out, &rec.h, []byte(rec.block))
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.warc.gz"), out.Bytes(), 0o644))
	a := openDir(t, dir)
	require.Equal(t, map[string]string{"a.test/1": "one, two", "a.test/2": "one, two",
		"a.test/4": "four"}, tree(t, New(a, "", time.Time{})))
	require.NoError(t, a.Close())
}

// net/http's file server makes the site browsable as it was.
func TestServedByNetHTTP(t *testing.T) {
	a := siteOf(t, "http://a.test/", "http://a.test/b/", "http://a.test/b/c.html",
		"http://a.test/plain")
	sub, err := fs.Sub(New(a, "a.test", time.Time{}), "a.test")
	require.NoError(t, err)
	server := httptest.NewServer(Handler(sub))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"/": "http://a.test/", "/b/": "http://a.test/b/",
		"/b/c.html": "http://a.test/b/c.html", "/plain": "http://a.test/plain"} {
		for _, from := range []int{0, 1, 7} {
			req, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
			require.NoError(t, err)
			status := http.StatusOK
			if from > 0 {
				req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
				status = http.StatusPartialContent
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, errors.Join(err, resp.Body.Close()))
			require.Equal(t, want[from:], string(text), path)
			require.Equal(t, status, resp.StatusCode, path)
		}
	}
}

// A page reads from any offset like a file in memory, whatever its content coding.
func TestSeek(t *testing.T) {
	text := make([]byte, 20_000)
	rnd := rand.New(rand.NewPCG(3, 5))
	for i := range text {
		text[i] = 'a' + byte(rnd.IntN(26))
	}
	for _, coding := range []string{"", "gzip", "br"} {
		a := openDir(t, t.TempDir())
		_, err := a.Append(archive.Capture{URL: "http://a.test/b", Time: someTime,
			Body: packed(t, coding, string(text)),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + "\r\n\r\n")})
		require.NoError(t, err)
		opened, err := New(a, "", time.Time{}).Open("a.test/b")
		require.NoError(t, err)
		file, model := opened.(io.ReadSeeker), bytes.NewReader(text)
		for range 300 {
			offset := rnd.Int64N(3*int64(len(text))) - int64(len(text))
			whence := rnd.IntN(4)
			if rnd.IntN(20) == 0 {
				offset, whence = math.MaxInt64-rnd.Int64N(2), io.SeekStart
			}
			at, err := file.Seek(offset, whence)
			want, failed := model.Seek(offset, whence)
			require.Equal(t, failed != nil, err != nil, "%d from %d: %v", offset, whence, err)
			require.Equal(t, want, at)
			got, expected := make([]byte, rnd.IntN(3000)), make([]byte, 3000)
			n, err := io.ReadFull(file, got)
			require.True(t, err == nil || err == io.EOF || err == io.ErrUnexpectedEOF, "%v", err)
			m, _ := io.ReadFull(model, expected[:len(got)])
			require.Equal(t, expected[:m], got[:n])
		}
		_, err = file.Seek(math.MaxInt64, io.SeekEnd)
		require.Error(t, err, "the sum overflows")
		require.NoError(t, opened.Close())
		require.NoError(t, a.Close())
	}
}
