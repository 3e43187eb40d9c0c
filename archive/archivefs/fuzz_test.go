package archivefs

import (
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// Whatever URLs an archive holds, each page is one file, and each file is one page; both ways to
// find a file, by name and by listing, agree.
func FuzzView(f *testing.F) {
	f.Add("http://a.test/", "http://a.test/index.html", "http://a.test/index.html/")
	f.Add("http://a.test/a", "https://a.test/a/b?c/d", "http://b.a.test:81//")
	f.Add("http://a.test/?", "http://a.test/#x", "x://a.test/./..")
	f.Add("http://[::1]:8/^", "http://1.2.3.4/\\", "http://a,b/c")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		a := openDir(t, t.TempDir())
		pages := map[string]bool{} // by SURT
		for _, url := range []string{one, two, three} {
			scheme, _, absolute := strings.Cut(url, ":")
			if !absolute || !urlkey.IsScheme(scheme) || !utf8.ValidString(url) || strings.ContainsFunc(url,
				func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
				continue
			}
			visit{url, someTime, 200, url}.into(t, a)
			key, long := urlkey.Of(url)
			if surt, _, whole := strings.Cut(key, "\x00"); whole && long == "" {
				pages[surt] = true
			}
		}
		view := New(a, "", time.Time{})
		found := map[string]bool{}
		require.NoError(t, fs.WalkDir(view, ".", func(name string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			n, err := view.walk(name)
			require.NoError(t, err)
			require.NotNil(t, n, "%q was listed", name)
			require.Equal(t, d.IsDir(), n.dir)
			if d.IsDir() {
				return nil
			}
			require.Equal(t, d.(*node).version, n.version)
			key, _ := urlkey.Of(n.version.URL)
			surt, _, _ := strings.Cut(key, "\x00")
			require.False(t, found[surt], "%q is there twice", n.version.URL)
			found[surt] = true
			return nil
		}))
		require.Equal(t, pages, found)
		require.NoError(t, a.Close())
	})
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
