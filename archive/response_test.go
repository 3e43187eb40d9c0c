package archive

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResponse(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	at := func(hours int) time.Time { return someTime.Add(time.Duration(hours) * time.Hour) }
	put := func(c Capture) {
		c.URL = "http://a.test/"
		_, err := a.Append(c)
		require.NoError(t, err)
	}
	put(Capture{Time: at(1), Body: gzipped(t, []byte("text")), Head: []byte("HTTP/1.1 200 OK\r\n" +
		"Content-Type: text/html; charset=koi8-r\r\nContent-Encoding: gzip\r\nContent-Length: 28\r\n" +
		"ETag: \"1\"\r\nX-Age: old\r\n\r\n")})
	put(Capture{Time: at(2), Head: []byte("HTTP/2.0 304\r\nETag: \"1\"\r\nX-Age: new\r\n\r\n")})
	put(Capture{Time: at(3), Request: []byte("POST / HTTP/1.1\r\nX-A: b\r\n\r\nform"), Body: []byte("done"),
		Head: []byte("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n")})
	put(Capture{Time: at(4), Request: []byte("HEAD / HTTP/1.1\r\n\r\n"),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Length: 99\r\nLast-Modified: yesterday\r\n\r\n")})
	for hours, want := range []struct {
		status, length int
		method, body   string
		age, modified  string
		charset        bool
		proto          string
	}{
		1: {200, -1, "GET", "text", "old", "", true, "HTTP/1.1"},
		2: {200, -1, "GET", "text", "new", "", true, "HTTP/1.1"},
		3: {201, -1, "POST", "done", "", "", false, "HTTP/1.1"},
		4: {200, 0, "HEAD", "", "", "yesterday", false, "HTTP/1.1"},
	} {
		if hours == 0 {
			continue
		}
		answers, err := a.Answers("http://a.test/", want.method, "")
		require.NoError(t, err)
		v := answers[min(hours, len(answers))-1]
		resp, err := a.Response(v)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want.body, string(text))
		require.Equal(t, want.status, resp.StatusCode)
		require.EqualValues(t, want.length, resp.ContentLength)
		require.Equal(t, want.method, resp.Request.Method)
		require.Equal(t, "http://a.test/", resp.Request.URL.String())
		require.Equal(t, want.age, resp.Header.Get("X-Age"))
		require.Equal(t, want.charset, strings.HasSuffix(resp.Header.Get("Content-Type"), "koi8-r"))
		require.Empty(t, resp.Header.Get("Content-Encoding"))
		require.Equal(t, want.proto, resp.Proto)
		_, modified, err := a.Validators(v)
		require.NoError(t, err)
		require.Equal(t, want.modified, modified)
	}
	v, err := a.At("http://a.test/", at(2))
	require.NoError(t, err)
	etag, _, err := a.Validators(v)
	require.NoError(t, err)
	require.Equal(t, `"1"`, etag)
}

// Secrets in heads are not recorded, unless they are asked for, and others may read no file.
func TestSecretsAreRedacted(t *testing.T) {
	c := Capture{URL: "http://a.test/", Time: someTime,
		Request: []byte("GET / HTTP/1.1\r\nauthorization : Bearer hush\r\n  and hush\r\nX-Key: hush\r\nA: b\r\n\r\nhush"),
		Head:    []byte("HTTP/1.1 200 OK\nSet-Cookie: hush\nSet-Cookie: hush\nB: c\n\n")}
	for name, want := range map[string]struct {
		redact func(string, bool) bool
		left   int
	}{
		"default": {nil, 2},
		"none":    {func(string, bool) bool { return false }, 6},
		"more":    {func(f string, secret bool) bool { return secret || f == "X-Key" }, 1},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		a, err := Open(dir, Options{Redact: want.redact})
		require.NoError(t, err)
		_, err = a.Append(c)
		require.NoError(t, err)
		var all bytes.Buffer
		for rec, err := range a.Records() {
			require.NoError(t, err)
			_, err = io.Copy(&all, rec)
			require.NoError(t, err)
			if rec.Type() != "warcinfo" {
				require.Equal(t, name != "none", rec.Get("Spinneret-Heads") == "redacted")
			}
		}
		require.Equal(t, want.left, strings.Count(all.String(), "hush"), name)
		require.Contains(t, all.String(), "A: b\r\n\r\nhush")
		require.Contains(t, all.String(), "B: c\n\n")
		require.NoError(t, a.Close())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			info, err := e.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, e.Name())
		}
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
}

// Each finished file is announced once, whoever finishes it, and can be used then.
func TestFinishedFiles(t *testing.T) {
	dir := t.TempDir()
	announced := map[string]int{}
	opts := Options{MaxFile: 1000}
	var a *Archive
	opts.Finished = func(path string) {
		_, err := os.Stat(path)
		require.NoError(t, err)
		if a != nil {
			_, err = a.At("http://a.test/", time.Time{}) // no lock is held
			require.NoError(t, err)
		}
		announced[filepath.Base(path)]++
	}
	name, data, _ := deadFile(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+unfinished), data, 0o600))
	opened := openDir(t, dir, opts)
	require.Equal(t, map[string]int{name: 1}, announced)
	a = opened
	for range 5 {
		_, err := a.Append(page("http://a.test/", strings.Repeat("x", 500)))
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	names, err := a.Files()
	require.NoError(t, err)
	require.Greater(t, len(names), 2)
	for _, name := range names {
		require.Equal(t, 1, announced[name], name)
	}
}

// An erasure tells of the file that it finishes, also if there is nothing to erase.
func TestErasureTellsWhatItFinishes(t *testing.T) {
	var told []string
	a := openDir(t, t.TempDir(), Options{Finished: func(path string) { told = append(told, filepath.Base(path)) }})
	_, err := a.Append(page("http://a.test/", "text"))
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
	require.NoError(t, err)
	names, err := a.Files()
	require.NoError(t, err)
	require.Equal(t, names, told)
	require.NoError(t, a.Close())
	require.Len(t, told, 1)
}

// A crawler holds the version that it asks about while an erasure moves it.
func TestValidatorsOfAMovedVersion(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{Share: true})
	for i, url := range []string{"http://gone.test/", "http://kept.test/"} {
		c := page(url, strings.Repeat("text ", 500))
		c.Time = someTime.Add(time.Duration(i) * time.Hour)
		c.Head = []byte("HTTP/1.1 200 OK\r\nETag: \"x\"\r\n\r\n")
		_, err := a.Append(c)
		require.NoError(t, err)
	}
	v, err := a.At("http://kept.test/", time.Time{})
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "")
	require.NoError(t, err)
	_, _, err = a.Validators(v)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = a.AppendMetadata(v.Location)
	require.ErrorIs(t, err, ErrNotFound)
	v, err = a.At(v.URL, v.Time)
	require.NoError(t, err)
	etag, _, err := a.Validators(v)
	require.NoError(t, err)
	require.Equal(t, `"x"`, etag)
	_, err = a.AppendMetadata(v.Location)
	require.NoError(t, err)
}
