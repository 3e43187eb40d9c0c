package archivefs

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// packed returns a text under a content coding.
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
		{"in chunks", "", true, text, text},
		{"gzip", "gzip", false, string(packed(t, "gzip", text)), text},
		{"gzip in chunks", "GZIP", true, string(packed(t, "gzip", text)), text},
		{"gzip by its old name", "x-gzip", false, string(packed(t, "gzip", text)), text},
		{"deflate", "deflate", false, string(packed(t, "deflate", text)), text},
		{"zstd", "zstd", true, string(packed(t, "zstd", text)), text},
		{"said to be gzip", "gzip", false, text, text},
		{"said to be zstd", "zstd", false, "x", "x"},
		{"brotli", "br", false, string(packed(t, "br", text)), text},
		{"two of them", "zstd, gzip", false,
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
			require.Equal(t, map[string]string{"a.test/b": tt.want}, tree(t, New(a, "", time.Time{})))
			require.NoError(t, fstest.TestFS(New(a, "", time.Time{}), "a.test/b"))
			require.NoError(t, a.Close())
		})
	}
}

// A body that the crawler has cut is what there is of it; one that was damaged later is an error.
func TestBodiesThatAreNotWhole(t *testing.T) {
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
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "its size cannot be known")
		}
		require.NoError(t, a.Close())
	}
}

func TestFilesOfALostWARC(t *testing.T) {
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
	require.NoError(t, err, "the index knows it")
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

func TestFilesThatAreClosed(t *testing.T) {
	f, err := New(siteOf(t, "http://a.test/b"), "", time.Time{}).Open("a.test/b")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Stat()
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
}

// A long directory can be had in pieces, and a file while it is still read by others.
func TestALongDirectory(t *testing.T) {
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
		if n == 14 { // what comes meanwhile does not disturb
			visit{"http://a.test/000", someTime.Add(time.Second), 404, ""}.into(t, a)
		}
	}
	require.Equal(t, 300, n)
	rest, err := dir.ReadDir(-1)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, dir.Close())
}

// Revisits of other URLs, resources and files of other programs are files, too.
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
		{warc.Head{Type: "resource", TargetURI: "http://a.test/4", ContentType: "text/plain"}, "four"},
		{warc.Head{Type: "metadata", TargetURI: "http://a.test/5", ContentType: "text/plain"}, "five"},
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

// A server of static files makes a browsable copy of the site as it was.
func TestServedByNetHTTP(t *testing.T) {
	a := siteOf(t, "http://a.test/", "http://a.test/b/", "http://a.test/b/c.html")
	sub, err := fs.Sub(New(a, "a.test", time.Time{}), "a.test")
	require.NoError(t, err)
	server := httptest.NewServer(http.FileServerFS(sub))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"/": "http://a.test/", "/b/": "http://a.test/b/",
		"/b/c.html": "http://a.test/b/c.html"} {
		resp, err := http.Get(server.URL + path)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		require.Equal(t, want, string(text), path)
	}
}
