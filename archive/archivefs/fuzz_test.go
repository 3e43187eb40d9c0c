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

// FuzzView asserts that, for any URLs, each page is exactly one file, and that lookups by name
// agree with listings.
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
			invalid := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
			if !absolute || !urlkey.IsScheme(scheme) || !utf8.ValidString(url) ||
				strings.ContainsFunc(url, invalid) {
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
			require.False(t, found[surt], "%q has two files", n.version.URL)
			found[surt] = true
			return nil
		}))
		require.Equal(t, pages, found)
		require.NoError(t, a.Close())
	})
}

// FuzzFileNames asserts that each name is valid in a path and decodes to the part it encodes, so
// that names are distinct.
func FuzzFileNames(f *testing.F) {
	for _, part := range []string{"", ".", "..", "...", "a?b=/c", "#", "#2E", "index.html",
		"index.html#", "\xff", "ä", "a/b", `\`, "a\x00", "A.test:81", "a,b", "[::1]:8"} {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part string) {
		name := escapeName(part)
		require.True(t, fs.ValidPath(name) && name != ".", "%q", name)
		require.NotContains(t, name, "/")
		back, ok := unescapeName(name)
		require.True(t, ok)
		require.Equal(t, part, back)
		if got, ok := unescapeName(part); ok { // the part is used as a name
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
