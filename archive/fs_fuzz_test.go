package archive

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Whatever URLs an archive holds, each page is one file, and each file is one page; both ways to
// find a file, by name and by listing, agree.
func FuzzView(f *testing.F) {
	f.Add("http://a.test/", "http://a.test/index.html", "http://a.test/index.html/")
	f.Add("http://a.test/a", "https://a.test/a/b?c/d", "http://b.a.test:81//")
	f.Add("http://a.test/?", "http://a.test/#x", "x://a.test/./..")
	f.Add("http://[::1]:8/^", "http://1.2.3.4/\\", "http://a,b/c")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		a := &Archive{index: openTestIndex(t, vfs.NewMem())} // entries are enough
		pages := map[string]bool{}                           // by key without the scheme
		for i, url := range []string{one, two, three} {
			if urlFault(url) != "" || strings.IndexByte(url, 0xff) >= 0 {
				continue
			}
			key, long := urlKey(url)
			e := entry{time: 1, offset: int64(i), length: 1, kind: Changed, status: 200}
			if long != "" {
				e.url = url
			}
			a.index.add("fuzz.warc.gz", key, &e, "", 10)
			if surt, _, whole := strings.Cut(key, "\x00"); whole && long == "" {
				pages[surt] = true
			}
		}
		view := a.FS("", time.Time{})
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
			key, _ := urlKey(n.version.URL)
			surt, _, _ := strings.Cut(key, "\x00")
			require.False(t, found[surt], "%q is there twice", n.version.URL)
			found[surt] = true
			return nil
		}))
		require.Equal(t, pages, found)
	})
}
