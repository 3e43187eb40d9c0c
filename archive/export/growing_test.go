package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// appending is a writer that appends to the archive before each write.
type appending struct {
	bytes.Buffer
	archive *archive.Archive
	n       int
	failed  error
}

func (w *appending) Write(p []byte) (int, error) {
	if w.n++; w.n <= 50 {
		_, err := w.archive.Append(capture(fmt.Sprintf("http://late.test/%d", w.n)))
		if err != nil {
			w.failed = err
		}
	}
	return w.Buffer.Write(p)
}

// capture has a body that hardly compresses.
func capture(url string) archive.Capture {
	return archive.Capture{URL: url, Time: began,
		Body: fmt.Appendf(nil, "%x", sha256.Sum256([]byte(url))),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")}
}

// unpacked returns the parts of a WACZ file, and requires that their names are distinct.
func unpacked(t *testing.T, data []byte) map[string]string {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	parts := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NotContains(t, parts, f.Name)
		parts[f.Name] = string(text)
	}
	return parts
}

// requireClosed requires that a WACZ file contains every file in its index and every page in its
// list.
func requireClosed(t *testing.T, parts map[string]string) {
	indexed := map[string]bool{}
	for text := range strings.Lines(parts["indexes/index.cdxj"]) {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(text, " ", 3)[2]), &fields))
		require.Contains(t, parts, "archive/"+fields["filename"], text)
		indexed[fields["url"]] = true
	}
	for text := range strings.Lines(parts["pages/pages.jsonl"]) {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(text), &fields))
		require.True(t, fields["format"] != "" || indexed[fields["url"]], text)
	}
}

// Files started while an archive is packed are not in the package, and their captures are not
// listed.
func TestWACZOfGrowingArchive(t *testing.T) {
	for _, size := range []int64{1, -1} {
		a, err := archive.Open(t.TempDir(), archive.Options{MaxFile: size})
		require.NoError(t, err)
		for i := range 100 {
			_, err := a.Append(capture(fmt.Sprintf("http://early.test/%d", i)))
			require.NoError(t, err)
		}
		w := &appending{archive: a}
		require.NoError(t, export.WACZ(w, a, export.Options{}))
		require.NoError(t, w.failed)
		require.Greater(t, w.n, 3)
		parts := unpacked(t, w.Bytes())
		require.Equal(t, 100, strings.Count(parts["indexes/index.cdxj"], "\n"))
		requireClosed(t, parts)
		require.NoError(t, a.Close())
	}
}

// erasing is a writer that erases from the archive before the first write.
type erasing struct {
	appending
	selection archive.Selection
	erased    int
}

func (w *erasing) Write(p []byte) (int, error) {
	if w.n++; w.n == 1 {
		report, err := w.archive.Erase(context.Background(), w.selection, "asked for")
		w.erased, w.failed = report.Erased, err
	}
	return w.Buffer.Write(p)
}

// An erasure moves captures that stay to another file. A package without them is not complete.
func TestWACZBesideAnErasure(t *testing.T) {
	for _, compression := range []warc.Compression{warc.Gzip, warc.Zstd} {
		for _, moved := range []bool{true, false} {
			a, err := archive.Open(t.TempDir(), archive.Options{Compression: compression, MaxFile: 4 << 10})
			require.NoError(t, err)
			for i := range 30 {
				c := capture("http://a.test/")
				c.Time = began.AddDate(0, 0, i%3)
				if i > 2 || !moved {
					c.URL = fmt.Sprint("http://b.test/", i)
				}
				_, err = a.Append(c)
				require.NoError(t, err)
			}
			w := &erasing{appending{archive: a}, archive.Selection{URL: "http://a.test/", To: began.AddDate(0, 0, 1)}, 0}
			if !moved {
				w.selection = archive.Selection{URL: "http://b.test/7"}
			}
			require.ErrorContains(t, export.WACZ(w, a, export.Options{}), "export it again")
			require.NoError(t, w.failed)
			require.Equal(t, 1, w.erased)
			again := &appending{archive: a, n: 50}
			require.NoError(t, export.WACZ(again, a, export.Options{}))
			parts := unpacked(t, again.Bytes())
			require.Equal(t, 29, strings.Count(parts["indexes/index.cdxj"], "\n"))
			requireClosed(t, parts)
			require.NoError(t, a.Close())
		}
	}
}

// If a backup restored an older, unfinished copy of a file, only the finished file is packed.
func TestWACZWithAnOldCopy(t *testing.T) {
	dir := t.TempDir()
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	loc, err := a.Append(capture("http://a.test/"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	data, err := os.ReadFile(filepath.Join(dir, loc.File))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, loc.File+".open"), data[:loc.Offset], 0o644))
	a, err = archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, export.WACZ(&out, a, export.Options{}))
	parts := unpacked(t, out.Bytes())
	requireClosed(t, parts)
	require.Equal(t, string(data), parts["archive/"+loc.File])
	require.NoError(t, a.Close())
}
