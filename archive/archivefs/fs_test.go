package archivefs

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// The names are in the order of the URLs.
func TestNamesOfPages(t *testing.T) {
	tests := []struct {
		name  string
		urls  []string
		names []string
	}{
		{"a page", []string{"http://a.test/b"}, []string{"a.test/b"}},
		{"a page in a directory", []string{"http://a.test/b/c.html"}, []string{"a.test/b/c.html"}},
		{"the page of the host", []string{"http://a.test"}, []string{"a.test/index.html"}},
		{"the page of a directory", []string{"http://a.test/b/"}, []string{"a.test/b/index.html"}},
		{"a port", []string{"http://a.test:81/b"}, []string{"a.test:81/b"}},
		{"a default port", []string{"https://a.test:443/b"}, []string{"a.test/b"}},
		{"an address", []string{"http://[2001:db8::1]:81/b"}, []string{"[2001:db8::1]:81/b"}},
		{"percent signs", []string{"http://a.test/%7Eb%2Fc"}, []string{"a.test/%7Eb%2Fc"}},
		{"letters that URLs escape", []string{"http://a.test/ä"}, []string{"a.test/%C3%A4"}},
		{"a query", []string{"http://a.test/b?c=d&e=/f/"}, []string{"a.test/b#3Fc=d&e=#2Ff#2F"}},
		{"an empty query", []string{"http://a.test/b?"}, []string{"a.test/b#3F"}},
		{"a query of the host", []string{"http://a.test?b"}, []string{"a.test/#3Fb"}},
		{"two question marks", []string{"http://a.test/b?c?d"}, []string{"a.test/b#3Fc#3Fd"}},
		{"a query is not a directory", []string{"http://a.test/b?c/d", "http://a.test/b"},
			[]string{"a.test/b#3Fc#2Fd", "a.test/b"}},
		{"an empty segment", []string{"http://a.test//b"}, []string{"a.test/#/b"}},
		{"only empty segments", []string{"http://a.test///"}, []string{"a.test/#/#/index.html"}},
		{"dots", []string{"http://a.test/./../..."}, []string{"a.test/#2E/#2E#2E/..."}},
		{"a backslash", []string{`http://a.test/b\c`}, []string{"a.test/b#5Cc"}},
		{"a fragment is dropped", []string{"http://a.test/b#c"}, []string{"a.test/b"}},
		{"a page and a directory", []string{"http://a.test/b", "http://a.test/b/c"},
			[]string{"a.test/b#", "a.test/b/c"}},
		{"a page and the page of a directory", []string{"http://a.test/b", "http://a.test/b/"},
			[]string{"a.test/b#", "a.test/b/index.html"}},
		{"a page named index.html", []string{"http://a.test/index.html"},
			[]string{"a.test/index.html"}},
		{"and the page of the directory", []string{"http://a.test/index.html", "http://a.test/"},
			[]string{"a.test/index.html#", "a.test/index.html"}},
		{"and a directory of that name", []string{"http://a.test/index.html", "http://a.test/",
			"http://a.test/index.html/b"},
			[]string{"a.test/index.html#", "a.test/index.html", "a.test/#69ndex.html/b"}},
		{"only a directory named index.html", []string{"http://a.test/index.html/"},
			[]string{"a.test/#69ndex.html/index.html"}},
		{"a host and its subdomain", []string{"http://a.test/b", "http://c.a.test/b"},
			[]string{"a.test/b", "c.a.test/b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := New(siteOf(t, tt.urls...), "", time.Time{})
			want := map[string]string{}
			for i, name := range tt.names {
				want[name] = tt.urls[i]
			}
			require.Equal(t, want, tree(t, fsys))
			require.NoError(t, fstest.TestFS(fsys, tt.names...))
		})
	}
}

// A file has one name, and no other resolves to it.
func TestNamesThatDoNotExist(t *testing.T) {
	fsys := New(siteOf(t, "http://a.test/b", "http://a.test/c/d", "http://a.test/c",
		"http://a.test/", "http://a.test/e?f"), "", time.Time{})
	for _, name := range []string{
		"A.test/b", "a.test./b", "a.test:80/b", "b.test", "test", "a.test/B", "a.test/b#",
		"a.test/d", "a.test/#62", "a.test/b/index.html", "a.test/c/index.html", "a.test/c##",
		"a.test/index.html#",
		"a.test/e", "a.test/e?f", "a.test/e#3ff", "a.test/e#3", "a.test/e#", "a.test/#", "#", "#/b",
		"a.test/c#2Fd", "a.test/c/d/", "/a.test/b", "a.test//b", "a.test/./b", "", "a.test/c/../b",
		"a.test/#69ndex.html",
	} {
		_, err := fsys.Open(name)
		want := fs.ErrNotExist
		if !fs.ValidPath(name) {
			want = fs.ErrInvalid
		}
		require.ErrorIs(t, err, want, name)
		var where *fs.PathError
		require.ErrorAs(t, err, &where)
		require.Equal(t, name, where.Path)
		_, err = fsys.Stat(name)
		require.ErrorIs(t, err, want, name)
		_, err = fsys.ReadDir(name)
		require.ErrorIs(t, err, want, name)
	}
	_, err := fsys.ReadDir("a.test/b")
	require.ErrorIs(t, err, errNotDir)
	dir, err := fsys.Open("a.test")
	require.NoError(t, err)
	_, err = dir.Read(make([]byte, 1))
	require.ErrorIs(t, err, errIsDir)
	require.NoError(t, dir.Close())
}

// The history of one URL decides whether it is a file at a given time.
func TestFilesAreValidVersions(t *testing.T) {
	hour := func(n int) time.Time { return someTime.Add(time.Duration(n) * time.Hour) }
	const url = "http://a.test/b"
	history := []visit{
		{url, hour(1), 200, "one"}, {url, hour(2), 304, ""}, {url, hour(3), 404, "lost"},
		{url, hour(4), 301, "moved"}, {url, hour(5), 200, "two"}, {url, hour(6), 200, "two"},
		{url, hour(7), 206, "part"}, {url, hour(8), 500, "broken"},
	}
	a := openDir(t, t.TempDir())
	for _, v := range history {
		v.into(t, a)
	}
	want := []string{"", "one", "one", "", "", "two", "two", "two", ""}
	for i, text := range want {
		files := tree(t, New(a, "a.test", hour(i)))
		if text == "" {
			require.Empty(t, files, "hour %d", i)
			continue
		}
		require.Equal(t, map[string]string{"a.test/b": text}, files, "hour %d", i)
		info, err := New(a, "", hour(i).Add(time.Minute)).Stat("a.test/b")
		require.NoError(t, err)
		found := hour(i)
		if history[i-1].status == 206 {
			found = hour(i - 1) // a part is no version of the page
		}
		require.Equal(t, found.UTC().Truncate(time.Microsecond), info.ModTime())
		require.Equal(t, url, info.Sys().(archive.Version).URL)
	}
	require.Empty(t, tree(t, New(a, "", time.Time{})), "the last version is an error")
	require.NoError(t, a.Close())
	_, err := New(a, "", hour(1)).Open("a.test/b")
	require.ErrorIs(t, err, archive.ErrClosed)
}

// Pages that differ only in their scheme are one file.
func TestBothSchemes(t *testing.T) {
	a := siteOf(t, "http://a.test/both", "https://a.test/both", "http://a.test/plain",
		"https://a.test/safe", "ftp://a.test/both", "ftp://a.test/old", "zz://a.test/plain")
	require.Equal(t, map[string]string{"a.test/both": "https://a.test/both",
		"a.test/plain": "http://a.test/plain", "a.test/safe": "https://a.test/safe",
		"a.test/old": "ftp://a.test/old"}, tree(t, New(a, "", time.Time{})))
}

func TestSites(t *testing.T) {
	urls := []string{"http://a.test/1", "http://www.a.test/2", "http://a.test:81/3",
		"http://ba.test/4", "http://192.0.2.1/5"}
	names := []string{"a.test/1", "www.a.test/2", "a.test:81/3", "ba.test/4", "192.0.2.1/5"}
	a := siteOf(t, urls...)
	for site, want := range map[string][]string{
		"":           {"192.0.2.1", "a.test", "a.test:81", "ba.test", "www.a.test"},
		"a.test":     {"a.test", "a.test:81", "www.a.test"},
		"A.Test":     {"a.test", "a.test:81", "www.a.test"},
		"www.a.test": {"www.a.test"},
		"test":       {"a.test", "a.test:81", "ba.test", "www.a.test"},
		"192.0.2.1":  {"192.0.2.1"},
		"other.test": nil,
	} {
		fsys := New(a, site, time.Time{})
		entries, err := fsys.ReadDir(".")
		require.NoError(t, err)
		var hosts []string
		for _, e := range entries {
			require.True(t, e.IsDir())
			hosts = append(hosts, e.Name())
		}
		require.Equal(t, want, hosts, site)
		for i, name := range names {
			host, _, _ := strings.Cut(name, "/")
			data, err := fs.ReadFile(fsys, name)
			if slices.Contains(want, host) {
				require.Equal(t, urls[i], string(data))
			} else {
				require.ErrorIs(t, err, fs.ErrNotExist, "%s of %s", name, site)
			}
		}
	}
	sub, err := fs.Sub(New(a, "a.test", time.Time{}), "www.a.test")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"2": urls[1]}, tree(t, sub))
}

// URLs without a host, and those that the index shortens, are skipped.
func TestURLsThatAreNotFiles(t *testing.T) {
	a := siteOf(t, "urn:x", "urn:x)/y", "a:b", "http://a.test/b",
		"http://a.test/"+strings.Repeat("x", 2*urlkey.MaxLen),
		"http://a.test/"+strings.Repeat("y/", urlkey.MaxLen))
	fsys := New(a, "", time.Time{})
	require.Equal(t, map[string]string{"a.test/b": "http://a.test/b"}, tree(t, fsys))
	require.NoError(t, fstest.TestFS(fsys, "a.test/b"))
}
