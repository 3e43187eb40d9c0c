package archive

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// siteOf makes an archive of pages, whose bodies are their URLs.
func siteOf(t testing.TB, urls ...string) *Archive {
	t.Helper()
	a := openDir(t, t.TempDir(), Options{})
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for _, url := range urls {
		_, err := a.Append(visit{url, someTime, 200, url}.capture())
		require.NoError(t, err)
	}
	return a
}

// tree returns the files of a file system with their contents.
func tree(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err, name)
		if d.IsDir() {
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		require.NoError(t, err, name)
		info, err := d.Info()
		require.NoError(t, err)
		require.EqualValues(t, len(data), info.Size(), name)
		files[name] = string(data)
		return nil
	}))
	return files
}

// Each case is the URLs of pages and the names that they get, in the order of the URLs.
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
		{"a usual port", []string{"https://a.test:443/b"}, []string{"a.test/b"}},
		{"an address", []string{"http://[2001:db8::1]:81/b"}, []string{"[2001:db8::1]:81/b"}},
		{"percent signs stay", []string{"http://a.test/%7Eb%2Fc"}, []string{"a.test/%7Eb%2Fc"}},
		{"letters that URLs escape", []string{"http://a.test/ä"}, []string{"a.test/%C3%A4"}},
		{"a query", []string{"http://a.test/b?c=d&e=/f/"}, []string{"a.test/b#3Fc=d&e=#2Ff#2F"}},
		{"an empty query", []string{"http://a.test/b?"}, []string{"a.test/b#3F"}},
		{"a query of the host", []string{"http://a.test?b"}, []string{"a.test/#3Fb"}},
		{"two question marks", []string{"http://a.test/b?c?d"}, []string{"a.test/b#3Fc#3Fd"}},
		{"a query is no directory", []string{"http://a.test/b?c/d", "http://a.test/b"},
			[]string{"a.test/b#3Fc#2Fd", "a.test/b"}},
		{"an empty part", []string{"http://a.test//b"}, []string{"a.test/#/b"}},
		{"empty parts alone", []string{"http://a.test///"}, []string{"a.test/#/#/index.html"}},
		{"dots", []string{"http://a.test/./../..."}, []string{"a.test/#2E/#2E#2E/..."}},
		{"a backslash", []string{`http://a.test/b\c`}, []string{"a.test/b#5Cc"}},
		{"a fragment is no part of it", []string{"http://a.test/b#c"}, []string{"a.test/b"}},
		{"a page and a directory", []string{"http://a.test/b", "http://a.test/b/c"},
			[]string{"a.test/b#", "a.test/b/c"}},
		{"a page and the page of a directory", []string{"http://a.test/b", "http://a.test/b/"},
			[]string{"a.test/b#", "a.test/b/index.html"}},
		{"a page called like that of its directory", []string{"http://a.test/index.html"},
			[]string{"a.test/index.html"}},
		{"both of them", []string{"http://a.test/index.html", "http://a.test/"},
			[]string{"a.test/index.html#", "a.test/index.html"}},
		{"and a directory, too", []string{"http://a.test/index.html", "http://a.test/",
			"http://a.test/index.html/b"},
			[]string{"a.test/index.html#", "a.test/index.html", "a.test/#69ndex.html/b"}},
		{"a directory alone called like a page", []string{"http://a.test/index.html/"},
			[]string{"a.test/#69ndex.html/index.html"}},
		{"hosts below one another", []string{"http://a.test/b", "http://c.a.test/b"},
			[]string{"a.test/b", "c.a.test/b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := siteOf(t, tt.urls...).FS("", time.Time{})
			want := map[string]string{}
			for i, name := range tt.names {
				want[name] = tt.urls[i]
			}
			require.Equal(t, want, tree(t, fsys))
			require.NoError(t, fstest.TestFS(fsys, tt.names...))
		})
	}
}

// A file has one name, and no other leads to it.
func TestNamesThatLeadNowhere(t *testing.T) {
	fsys := siteOf(t, "http://a.test/b", "http://a.test/c/d", "http://a.test/c", "http://a.test/",
		"http://a.test/e?f").FS("", time.Time{})
	for _, name := range []string{
		"A.test/b", "a.test./b", "a.test:80/b", "b.test", "test", "a.test/B", "a.test/b#", "a.test/d",
		"a.test/#62", "a.test/b/index.html", "a.test/c/index.html", "a.test/c##", "a.test/index.html#",
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

// What is a file at a time, by the history of one URL.
func TestFilesAreWhatWasValid(t *testing.T) {
	hour := func(n int) time.Time { return someTime.Add(time.Duration(n) * time.Hour) }
	const url = "http://a.test/b"
	history := []visit{
		{url, hour(1), 200, "one"}, {url, hour(2), 304, ""}, {url, hour(3), 404, "lost"},
		{url, hour(4), 301, "moved"}, {url, hour(5), 200, "two"}, {url, hour(6), 200, "two"},
		{url, hour(7), 206, "part"}, {url, hour(8), 500, "broken"},
	}
	a := openDir(t, t.TempDir(), Options{})
	for _, v := range history {
		_, err := a.Append(v.capture())
		require.NoError(t, err)
	}
	want := []string{"", "one", "one", "", "", "two", "two", "part", ""}
	for i, text := range want {
		files := tree(t, a.FS("a.test", hour(i)))
		if text == "" {
			require.Empty(t, files, "hour %d", i)
			continue
		}
		require.Equal(t, map[string]string{"a.test/b": text}, files, "hour %d", i)
		info, err := a.FS("", hour(i).Add(time.Minute)).Stat("a.test/b")
		require.NoError(t, err)
		require.Equal(t, hour(i).UTC().Truncate(time.Microsecond), info.ModTime())
		require.Equal(t, url, info.Sys().(Version).URL)
	}
	require.Empty(t, tree(t, a.FS("", time.Time{})), "the last one was an error")
	require.NoError(t, a.Close())
	_, err := a.FS("", hour(1)).Open("a.test/b")
	require.ErrorIs(t, err, ErrClosed)
}

// Where two schemes have a page at one place there is one file.
func TestBothSchemes(t *testing.T) {
	a := siteOf(t, "http://a.test/both", "https://a.test/both", "http://a.test/plain",
		"https://a.test/safe", "ftp://a.test/both", "ftp://a.test/old", "zz://a.test/plain")
	require.Equal(t, map[string]string{"a.test/both": "https://a.test/both",
		"a.test/plain": "http://a.test/plain", "a.test/safe": "https://a.test/safe",
		"a.test/old": "ftp://a.test/old"}, tree(t, a.FS("", time.Time{})))
}

func TestSites(t *testing.T) {
	urls := []string{"http://a.test/1", "http://www.a.test/2", "http://a.test:81/3", "http://ba.test/4",
		"http://192.0.2.1/5"}
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
		fsys := a.FS(site, time.Time{})
		entries, err := fsys.ReadDir(".")
		require.NoError(t, err)
		var hosts []string
		for _, e := range entries {
			require.True(t, e.IsDir())
			hosts = append(hosts, e.Name())
		}
		require.Equal(t, want, hosts, site)
		for i, name := range []string{"a.test/1", "www.a.test/2", "a.test:81/3", "ba.test/4", "192.0.2.1/5"} {
			host, _, _ := strings.Cut(name, "/")
			data, err := fs.ReadFile(fsys, name)
			if slices.Contains(want, host) {
				require.Equal(t, urls[i], string(data))
			} else {
				require.ErrorIs(t, err, fs.ErrNotExist, "%s of %s", name, site)
			}
		}
	}
	sub, err := fs.Sub(a.FS("a.test", time.Time{}), "www.a.test")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"2": urls[1]}, tree(t, sub))
}

// Keys that have no host, or were shortened, are passed over.
func TestURLsThatAreNoFiles(t *testing.T) {
	a := siteOf(t, "urn:x", "urn:x)/y", "a:b", "http://a.test/b",
		"http://a.test/"+strings.Repeat("x", 2*longKey), "http://a.test/"+strings.Repeat("y/", longKey))
	require.Equal(t, map[string]string{"a.test/b": "http://a.test/b"}, tree(t, a.FS("", time.Time{})))
	require.NoError(t, fstest.TestFS(a.FS("", time.Time{}), "a.test/b"))
}

// naiveTree names the pages of a history that were valid at a time, by the words of the
// documentation and with everything in memory.
func naiveTree(m model, at time.Time) map[string]string {
	pages := map[string]string{} // by host and path
	for _, v := range m {
		list := m.of(v.url)
		i := len(list) - 1
		for i >= 0 && list[i].at.After(at) {
			i--
		}
		if i < 0 || list[i].status != 200 && list[i].status != 304 {
			continue
		}
		if text, known := content(list, i); known {
			pages[strings.TrimPrefix(v.url, "http://")] = text
		}
	}
	files := map[string]string{}
	for page, text := range pages {
		isDir := func(name string) bool {
			for other := range pages {
				if strings.HasPrefix(other, name+"/") {
					return true
				}
			}
			return false
		}
		_, index := pages[strings.TrimSuffix(page, "index.html")]
		switch {
		case strings.HasSuffix(page, "/"):
			page += "index.html"
		case strings.HasSuffix(page, "/index.html") && index, isDir(page):
			page += "#"
		}
		files[page] = text
	}
	return files
}

// Random histories of a site where nearly every name is taken twice, at random times.
func TestFilesAreThoseOfTheModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			a := openDir(t, t.TempDir(), Options{MaxFile: 5000})
			a.index.limit = 9
			m := randomVisits(r, 120)
			parts := []string{"", "d", "d/", "d/1", "d/1/2", "d/index.html", "index.html", "d/1/"}
			for i := range m {
				m[i].url = fmt.Sprintf("http://%s/%s", []string{"a.test", "b.a.test:81"}[r.IntN(2)],
					parts[r.IntN(len(parts))])
				if m[i].status == 200 {
					m[i].body = fmt.Sprintf("%s %d", m[i].url, r.IntN(3))
				}
				_, err := a.Append(m[i].capture())
				require.NoError(t, err)
			}
			for range 12 {
				at := m[0].at.Add(time.Duration(r.Int64N(int64(m[len(m)-1].at.Sub(m[0].at)))))
				want := naiveTree(m, at)
				require.Equal(t, want, tree(t, a.FS("a.test", at)))
				require.NoError(t, fstest.TestFS(a.FS("", at), slices.Collect(maps.Keys(want))...))
			}
			require.NoError(t, a.Close())
		})
	}
}

// A name is valid in a path, and leads back to what it was made of; no two parts have one name.
func FuzzFileNames(f *testing.F) {
	for _, part := range []string{"", ".", "..", "...", "a?b=/c", "#", "#2E", "index.html", "index.html#",
		"\xff", "ä", "a/b", `\`, "a\x00", "A.test:81", "a,b", "[::1]:8"} {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part string) {
		name := escapeName(part)
		require.True(t, fs.ValidPath(name) && name != "." && !strings.Contains(name, "/"), "%q", name)
		back, ok := unescapeName(name)
		require.True(t, ok)
		require.Equal(t, part, back)
		if got, ok := unescapeName(part); ok { // the part taken for a name
			require.Equal(t, part, escapeName(got))
		}
		if got, ok := cutDirName(part); ok {
			require.Equal(t, part, dirName(got))
			require.NotEqual(t, indexPage, part)
		}
		if got, marked, ok := cutPageName(part); ok {
			require.Equal(t, part, pageName(got, marked))
		}
		if authority, ok := cutHostName(part); ok {
			require.Equal(t, part, hostName(authority))
		}
	})
}
