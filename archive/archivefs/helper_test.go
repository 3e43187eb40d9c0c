package archivefs

import (
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

var someTime = time.Date(2026, 11, 3, 4, 5, 6, 7_008_999, time.FixedZone("", 3600))

func openDir(t testing.TB, dir string) *archive.Archive {
	t.Helper()
	a, err := archive.Open(dir, archive.Options{Level: 1, Compressors: 1})
	require.NoError(t, err)
	return a
}

// visit is one capture in a history.
type visit struct {
	url    string
	at     time.Time
	status int
	body   string // "" for a 304
}

func (v visit) into(t testing.TB, a *archive.Archive) {
	t.Helper()
	_, err := a.Append(archive.Capture{URL: v.url, Time: v.at, Body: []byte(v.body),
		Head: fmt.Appendf(nil, "HTTP/1.1 %d X\r\nContent-Type: text/html\r\n\r\n", v.status)})
	require.NoError(t, err)
}

// siteOf makes an archive of pages, whose bodies are their URLs.
func siteOf(t testing.TB, urls ...string) *archive.Archive {
	t.Helper()
	a := openDir(t, t.TempDir())
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for _, url := range urls {
		visit{url, someTime, 200, url}.into(t, a)
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
