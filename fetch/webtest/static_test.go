package webtest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// staticDir creates two hosts, a file next to them, and a symbolic link out of the directory.
func staticDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "web")
	for name, body := range map[string]string{
		"docs.test/index.html":       "<title>home</title>",
		"docs.test/robots.txt":       "User-agent: *\nDisallow: /closed/\n",
		"docs.test/a/index.htm":      "<title>a</title>",
		"docs.test/a/b c.html":       "<title>b c</title>",
		"docs.test/m/index.html.en":  "<title>m</title>",
		"docs.test/m/style.css":      "p{}",
		"docs.test/noindex/data.bin": "\x00\x01",
		"docs.test/both.html/x.html": "<title>x</title>",
		"Other.test/index.html":      "<title>other</title>",
		"secret.txt":                 "not a host",
		".git/index.html":            "not a host either",
		"../outside.html":            "outside",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(body), 0o644))
		require.NoError(t, os.Chtimes(file, epoch, epoch))
	}
	if err := os.Symlink("../../outside.html", dir+"/docs.test/link.html"); err != nil {
		t.Log("no symbolic links here:", err)
	}
	return dir
}

func TestStatic(t *testing.T) {
	w := start(t, Options{Static: staticDir(t)})
	c := client(t, w)
	for _, tt := range []struct {
		name, path string
		status     int
		kind, body string // content type; body, or location of a redirect
	}{
		{"index.html for the root", "/", 200, "text/html", "<title>home</title>"},
		{"index.html by name", "/index.html", 200, "text/html", "<title>home</title>"},
		{"index.htm", "/a/", 200, "text/html", "<title>a</title>"},
		{"index.html.en", "/m/", 200, "text/html", "<title>m</title>"},
		{"folder without its slash", "/a", 301, "", "/a/"},
		{"folder without its slash, with a query", "/a?x=1", 301, "", "/a/?x=1"},
		{"folder named like a file", "/both.html", 301, "", "/both.html/"},
		{"folder without an index", "/noindex/", 404, "", ""},
		{"robots.txt unchanged", "/robots.txt", 200, "text/plain; charset=utf-8",
			"User-agent: *\nDisallow: /closed/\n"},
		{"stylesheet", "/m/style.css", 200, "text/css", "p{}"},
		{"escaped name", "/a/b%20c.html", 200, "text/html", "<title>b c</title>"},
		{"query is ignored", "/a/b%20c.html?print", 200, "text/html", "<title>b c</title>"},
		{"missing file", "/nothing.html", 404, "", ""},
		{"file with a slash", "/index.html/", 404, "", ""},
		{"file as a folder", "/index.html/x", 404, "", ""},
		{"escape by dots", "/../secret.txt", 404, "", ""},
		{"escape by encoded dots", "/%2e%2e/secret.txt", 404, "", ""},
		{"escape by encoded slashes", "/..%2fsecret.txt", 404, "", ""},
		{"escape by backslashes", "/..%5csecret.txt", 404, "", ""},
		{"escape by a NUL", "/index.html%00.txt", 404, "", ""},
		{"escape by a symbolic link", "/link.html", 404, "", ""},
		{"redirect stays on the host", "//a", 301, "", "/a/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := get(t, c, "http://docs.test"+tt.path)
			require.Equal(t, tt.status, r.status)
			switch tt.status {
			case 200:
				require.Equal(t, tt.kind, r.header.Get("Content-Type"))
				require.Equal(t, tt.body, r.body)
				require.Equal(t, epoch.Format(http.TimeFormat), r.header.Get("Last-Modified"))
			case 301:
				require.Equal(t, tt.body, r.header.Get("Location"))
			}
			log := w.Log()
			require.Equal(t, tt.status, log[len(log)-1].Status)
			require.Equal(t, "docs.test", log[len(log)-1].Host)
		})
	}
	since := epoch.Format(http.TimeFormat)
	r := get(t, c, "http://docs.test/", "If-Modified-Since", since)
	require.Equal(t, 304, r.status)
	require.Equal(t, 200, get(t, c, "http://other.test/").status, "names are case-insensitive")
	for h := range w.Hosts() {
		for page := range h.Pages() {
			t.Errorf("a static host has no generated page, but %s", page)
		}
	}
	require.Empty(t, w.Reachable())
	_, ok := w.Host(".git")
	require.False(t, ok, "it would be the first one, and so the seed of a crawl")
}

func TestStaticAndGeneratedHosts(t *testing.T) {
	w := start(t, Options{Static: staticDir(t), Hosts: 2, Addrs: 2, Traits: func(h int) Traits {
		if h < 2 {
			return Traits{}
		}
		return Traits{Throttle: Throttle{Every: 2}, Robots: Robots{Mode: RobotsMissing}}
	}})
	c := client(t, w)
	require.Equal(t, 200, get(t, c, first).status)
	require.Equal(t, 404, get(t, c, first+"index.html").status, "a generated host has no files")
	require.Equal(t, 200, get(t, c, "http://docs.test/robots.txt").status, "it has its own robots.txt")
	require.Equal(t, 200, get(t, c, "http://docs.test/").status)
	require.Equal(t, 429, get(t, c, "http://docs.test/").status, "traits apply to a static host")
	h, ok := w.Host("docs.test")
	require.True(t, ok)
	require.GreaterOrEqual(t, h.Index, 2)
	require.Equal(t, virtualAddr(firstServing, h.Index%2), h.Addr)
}

func TestContentTypes(t *testing.T) {
	for name, want := range map[string]string{
		"index.html": "text/html", "INDEX.HTM": "text/html", "index.html.en": "text/html",
		"index.html.ja.utf8": "text/html", "a.xhtml": "application/xhtml+xml",
		"a.css": "text/css", "a.js": "text/javascript", "a.mjs": "text/javascript",
		"robots.txt": "text/plain; charset=utf-8", "sitemap.xml": "application/xml",
		"a.png": "image/png", "README": "", "html": "",
	} {
		require.Equal(t, want, contentType(name), name)
	}
}

func TestStaticAnswersHeadAndRanges(t *testing.T) {
	w := start(t, Options{Static: staticDir(t)})
	c := client(t, w)
	resp, err := c.Head("http://docs.test/")
	require.NoError(t, err)
	resp.Body.Close()
	require.EqualValues(t, len("<title>home</title>"), resp.ContentLength)
	part := get(t, c, "http://docs.test/", "Range", "bytes=7-10")
	require.Equal(t, 206, part.status)
	require.Equal(t, "home", part.body)
	require.Equal(t, 206, w.Log()[1].Status)
}
