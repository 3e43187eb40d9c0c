package export_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/internal/zdict"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// pack writes a package and opens it.
func pack(t testing.TB, a *archive.Archive, o export.Options) *zip.Reader {
	var out bytes.Buffer
	require.NoError(t, export.WACZ(&out, a, o))
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	return z
}

// A crawl in zstd, with and without a dictionary, becomes a package that browsers can read, with
// the same records in gzip.
func TestRecompress(t *testing.T) {
	for _, opts := range []archive.Options{{Compression: warc.Zstd},
		{Compression: warc.Zstd, MaxFile: 3000}, {MaxFile: -1}} {
		a, dir := filled(t, opts)
		if opts.Compression == warc.Gzip {
			require.NoError(t, a.Close())
			withDict(t, dir)
			var err error
			a, err = archive.Open(dir, archive.Options{Compression: warc.Zstd})
			require.NoError(t, err)
		}
		v, err := a.At(urls[0], time.Time{})
		require.NoError(t, err)
		_, err = a.AppendMetadata(v.Location, warc.Field{Name: "note", Value: "a note"})
		require.NoError(t, err)
		want := map[string]string{}
		for rec, err := range a.Records() {
			require.NoError(t, err)
			want[rec.Get("WARC-Record-ID")] = whole(t, rec)
		}
		z := pack(t, a, export.Options{})
		require.Len(t, requireReadable(t, z), 3*len(urls))
		names, err := fs.Glob(z, "archive/*.warc.gz")
		require.NoError(t, err)
		got := map[string]string{}
		for _, name := range names {
			f, err := z.Open(name)
			require.NoError(t, err)
			for rec, err := range warc.NewReader(f, warc.ReaderOptions{Verify: true}).Records() {
				require.NoError(t, err)
				got[rec.Get("WARC-Record-ID")] = whole(t, rec)
			}
		}
		require.Equal(t, want, got)
	}
}

// whole returns a record with its fields.
func whole(t testing.TB, rec *warc.Record) string {
	fields := fmt.Sprint(rec.Version, rec.Fields())
	block, err := io.ReadAll(rec)
	require.NoError(t, err)
	return fields + string(block)
}

// withDict replaces the files of a closed archive without compression by zstd files with a
// dictionary, as other programs write them.
func withDict(t testing.TB, dir string) {
	dict := dictionary(t)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderDict(dict))
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, path := range paths {
		if file, found := strings.CutSuffix(path, ".gz"); found {
			f, err := os.Open(path)
			require.NoError(t, err)
			z, err := gzip.NewReader(f)
			require.NoError(t, err)
			plain, err := io.ReadAll(z)
			require.NoError(t, errors.Join(err, f.Close()))
			out := zdict.Append(nil, dict)
			for rec, err := range warc.NewReader(bytes.NewReader(plain), warc.ReaderOptions{}).Records() {
				require.NoError(t, err)
				require.NoError(t, rec.Close())
				out = enc.EncodeAll(plain[rec.Offset:rec.Offset+rec.Length], out)
			}
			require.NoError(t, os.WriteFile(file+".zst", out, 0o600))
		}
		require.NoError(t, os.Remove(path))
	}
}

// dictionary returns a dictionary trained on records like those of filled.
func dictionary(t testing.TB) []byte {
	var samples [][]byte
	r := rand.New(rand.NewPCG(0, 0))
	for range 100 {
		samples = append(samples, fmt.Appendf(nil, "WARC/1.1\r\nWARC-Type: response\r\n"+
			"WARC-Date: 2026-11-03T04:05:%02dZ\r\nContent-Length: %d\r\n\r\n"+
			"HTTP/1.1 200 X\r\nContent-Type: text/html; charset=x\r\n\r\n"+
			"body of http://%x.example.org/%x",
			r.IntN(60), r.IntN(1000), r.Uint32(), r.Uint64()))
	}
	dict, err := zstd.BuildDict(zstd.BuildDictOptions{ID: 99, Contents: samples,
		History: bytes.Join(samples[:20], nil)})
	require.NoError(t, err)
	return dict
}

// Only the record that cannot be read is omitted.
func TestRecompressDamage(t *testing.T) {
	dir := t.TempDir()
	a, err := archive.Open(dir, archive.Options{Compression: warc.Zstd})
	require.NoError(t, err)
	for i := range 5 {
		_, err := a.Append(archive.Capture{URL: fmt.Sprint("http://a.test/", i), Time: began,
			Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: fmt.Appendf(nil, "body %d", i)})
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	a, err = archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	v, err := a.At("http://a.test/2", time.Time{})
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join(dir, v.Location.File), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("damaged"), v.Location.Offset+v.Location.Length/2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Len(t, requireReadable(t, pack(t, a, export.Options{})), 4)
}

func TestTitles(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	want := map[string]string{}
	for i, page := range []struct{ media, body, title string }{
		{"text/html", "<title>Plain</title>", "Plain"},
		{"text/html", "<html><head><title>\n  Two\n  lines &amp; an entity </title>",
			"Two lines & an entity"},
		{"text/html; charset=windows-1251", "<title>\xcf\xf0\xe8\xe2\xe5\xf2</title>", "Привет"},
		{"text/html", "<script>'<title>no</title>'</script><title>yes</title>", "yes"},
		{"text/html", "<p>none", ""},
		{"text/html", "<title></title>", ""},
		{"text/html", strings.Repeat(" ", 70_000) + "<title>late</title>", ""},
		{"application/xhtml+xml", "<title>XHTML</title>", ""},
	} {
		url := fmt.Sprint("http://a.test/", i)
		_, err := a.Append(archive.Capture{URL: url, Time: began, Body: []byte(page.body),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: " + page.media + "\r\n\r\n")})
		require.NoError(t, err)
		if page.media != "application/xhtml+xml" {
			want[url] = page.title
		}
	}
	list, err := fs.ReadFile(pack(t, a, export.Options{}), "pages/pages.jsonl")
	require.NoError(t, err)
	got := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(list)), "\n")[1:] {
		var page struct{ URL, Title string }
		require.NoError(t, json.Unmarshal([]byte(line), &page))
		got[page.URL] = page.Title
	}
	require.Equal(t, want, got)
}

// A file that another program has put into the directory does not prevent an export: the archive does not know it yet.
func TestWACZWithoutUnknownFiles(t *testing.T) {
	a, dir := filled(t, archive.Options{})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.warc.gz"), nil, 0o600))
	for _, f := range pack(t, a, export.Options{}).File {
		require.NotEqual(t, "archive/other.warc.gz", f.Name)
	}
}
