package export_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/warc"
)

var began = time.Date(2026, 11, 3, 4, 5, 6, 0, time.UTC)

// urls have keys that differ from them in many ways.
var urls = []string{
	"http://www.Example.org/A/b?z=1&A=2", "https://example.org/", "http://www2.example.org:8080/x",
	"http://wwwx.example.org/", "http://example.org?b&a", "http://example.org/?",
	"http://192.0.2.1/a", "http://[2001:db8::1]:81/a", "https://example.org/%C3%A4",
	"http://a.b.c.example.org/d?e=http://f/",
}

// filled makes an archive of some URLs, each with a change, a repeat and an error.
func filled(t testing.TB, opts archive.Options) (*archive.Archive, string) {
	dir := t.TempDir()
	a, err := archive.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for i, url := range urls {
		for j, status := range []int{200, 200, 404} {
			_, err := a.Append(archive.Capture{
				URL: url, Time: began.Add(time.Duration(i*60+j) * time.Second),
				Head: fmt.Appendf(nil,
					"HTTP/1.1 %d X\r\nContent-Type: text/html; charset=x\r\n\r\n", status),
				Body: []byte("body of " + url),
			})
			require.NoError(t, err)
		}
	}
	return a, dir
}

func cdxj(t testing.TB, a *archive.Archive) []string {
	var out bytes.Buffer
	require.NoError(t, export.CDXJ(&out, a))
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestCDXJ(t *testing.T) {
	a, dir := filled(t, archive.Options{MaxFile: 3000})
	lines := cdxj(t, a)
	require.Len(t, lines, 3*len(urls))
	require.True(t, slices.IsSorted(lines))
	mimes := map[string]int{}
	for _, text := range lines {
		key, rest, _ := strings.Cut(text, " ")
		stamp, text, _ := strings.Cut(rest, " ")
		require.NotContains(t, key, "www.")
		require.Len(t, stamp, 14)
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(text), &fields))
		mimes[fields["mime"]+" "+fields["status"]]++
		requireRecordAt(t, dir, fields)
	}
	n := len(urls)
	want := map[string]int{"text/html 200": n, "warc/revisit 200": n, "text/html 404": n}
	require.Equal(t, want, mimes)
}

// requireRecordAt reads the record at the position in a line without the archive.
func requireRecordAt(t testing.TB, dir string, fields map[string]string) {
	path := filepath.Join(dir, fields["filename"])
	if _, err := os.Stat(path); err != nil {
		path += ".open"
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var offset, length int64
	_, err = fmt.Sscan(fields["offset"], &offset)
	require.NoError(t, err)
	_, err = fmt.Sscan(fields["length"], &length)
	require.NoError(t, err)
	r := warc.NewReader(nil, warc.ReaderOptions{Verify: true})
	r.ResetAt(f, offset, length)
	rec, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "sha1:"+fields["digest"], rec.Get("WARC-Payload-Digest"))
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
}

// warcio.js, an independent implementation, writes the same index of the same files.
func TestCDXJMatchesWarcio(t *testing.T) {
	wio := os.Getenv("SPINNERET_WARCIO")
	cli := filepath.Join(wio, "node_modules", "warcio", "dist", "cli.js")
	if _, err := os.Stat(cli); wio == "" || err != nil || testing.Short() {
		t.Skip("set SPINNERET_WARCIO to a directory after: npm install warcio")
	}
	a, dir := filled(t, archive.Options{MaxFile: 3000})
	for i, form := range forms {
		_, err := a.Append(archive.Capture{
			URL: "http://forms.test/" + form.query, Time: began.Add(time.Duration(i) * time.Hour),
			Request: fmt.Appendf(nil, "%s / HTTP/1.1\r\nHost: forms.test\r\nContent-Type: %s\r\n"+
				"Content-Length: %d\r\n\r\n%s", form.method, form.media, len(form.body), form.body),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
			Body: []byte(form.body),
		})
		require.NoError(t, err)
	}
	require.NoError(t, a.Sync())
	names, err := a.Files()
	require.NoError(t, err)
	args := []string{cli, "cdx-index"}
	for _, name := range names {
		args = append(args, filepath.Join(dir, name))
	}
	out, err := exec.CommandContext(t.Context(), "node", args...).Output()
	require.NoError(t, err)
	want := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.ElementsMatch(t, essence(t, want), essence(t, cdxj(t, a)))
}

// essence returns the parts of each line that both programs format in the same way.
func essence(t *testing.T, lines []string) (short []string) {
	for _, text := range lines {
		parts := strings.SplitN(text, " ", 3)
		var f map[string]string
		require.NoError(t, json.Unmarshal([]byte(parts[2]), &f), text)
		if strings.ContainsAny(f["requestBody"], "._+%") {
			parts[0] = "" // we sort parameters by name, like pywb; warcio.js sorts whole parameters
		}
		short = append(short, strings.Join([]string{parts[0], parts[1], f["mime"], f["status"],
			f["digest"], f["length"], f["offset"], strings.TrimSuffix(f["filename"], ".open"),
			f["method"], f["requestBody"]}, " "))
	}
	return short
}

func TestWACZ(t *testing.T) {
	for _, compression := range []warc.Compression{warc.Gzip, warc.Zstd} {
		a, dir := filled(t, archive.Options{MaxFile: 3000, Compression: compression})
		var out bytes.Buffer
		require.NoError(t, export.WACZ(&out, a, export.Options{Title: "Example"}))
		z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		parts := map[string][]byte{}
		for _, f := range z.File {
			r, err := f.Open()
			require.NoError(t, err)
			parts[f.Name], err = io.ReadAll(r)
			require.NoError(t, err)
			stored := strings.HasPrefix(f.Name, "archive/")
			require.Equal(t, stored, f.Method == zip.Store, f.Name)
		}
		if compression == warc.Gzip {
			want := strings.Join(cdxj(t, a), "\n") + "\n"
			require.Equal(t, want, string(parts["indexes/index.cdxj"]))
		}
		index := requireReadable(t, z)
		require.Len(t, index, 3*len(urls))
		pages := strings.Split(strings.TrimSpace(string(parts["pages/pages.jsonl"])), "\n")
		require.Len(t, pages, 1+len(urls))
		require.Contains(t, pages[0], "json-pages-1.0")

		var list struct {
			Profile   string
			Title     string
			Resources []struct {
				Path, Hash string
				Bytes      int
			}
		}
		require.NoError(t, json.Unmarshal(parts["datapackage.json"], &list))
		require.Equal(t, "data-package", list.Profile)
		require.Equal(t, "Example", list.Title)
		require.Len(t, list.Resources, len(parts)-2)
		for _, r := range list.Resources {
			require.Equal(t, len(parts[r.Path]), r.Bytes)
			require.Equal(t, hash(parts[r.Path]), r.Hash)
		}
		var digest map[string]string
		require.NoError(t, json.Unmarshal(parts["datapackage-digest.json"], &digest))
		require.Equal(t, hash(parts["datapackage.json"]), digest["hash"])

		names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz*"))
		require.NoError(t, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			base := strings.TrimSuffix(filepath.Base(name), ".open")
			require.True(t, bytes.Equal(data, parts["archive/"+base]), base)
		}
	}
}

// requireReadable unpacks a package, reads the gzip record of each index line, as a viewer does,
// and returns the lines.
func requireReadable(t testing.TB, z *zip.Reader) (lines []map[string]string) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, z))
	index, err := os.ReadFile(filepath.Join(dir, "indexes", "index.cdxj"))
	require.NoError(t, err)
	for text := range strings.Lines(string(index)) {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(text, " ", 3)[2]), &fields))
		require.Equal(t, ".gz", filepath.Ext(fields["filename"]))
		requireRecordAt(t, filepath.Join(dir, "archive"), fields)
		lines = append(lines, fields)
	}
	return lines
}

// Imported files get unique names in the package, and the index uses these.
func TestWACZWithImports(t *testing.T) {
	a, _ := filled(t, archive.Options{})
	var paths []string
	for i := range 3 { // two have the same name; the third has the one that the second will get
		name := []string{"x.warc.gz", "x.warc.gz", "2-x.warc.gz"}[i]
		var file bytes.Buffer
		enc, err := warc.NewEncoder(warc.EncoderOptions{})
		require.NoError(t, err)
		sum := sha1.Sum([]byte{byte(i)})
		_, _, err = enc.Encode(&file, &warc.Head{Type: "resource", Date: began, Payload: &sum,
			TargetURI: fmt.Sprintf("http://foreign.test/%d", i)}, []byte{byte(i)})
		require.NoError(t, err)
		paths = append(paths, filepath.Join(t.TempDir(), name))
		require.NoError(t, os.WriteFile(paths[i], file.Bytes(), 0o644))
	}
	_, err := a.Import(paths...)
	require.NoError(t, err)
	for i, text := range slices.DeleteFunc(cdxj(t, a), func(line string) bool {
		return !strings.HasPrefix(line, "test,foreign)")
	}) {
		require.Contains(t, text, paths[i], "a separate index has the path of the file")
	}

	var out bytes.Buffer
	require.NoError(t, export.WACZ(&out, a, export.Options{}))
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, z))
	index, err := os.ReadFile(filepath.Join(dir, "indexes", "index.cdxj"))
	require.NoError(t, err)
	files := map[string]bool{}
	for text := range strings.Lines(string(index)) {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(text, " ", 3)[2]), &fields))
		requireRecordAt(t, filepath.Join(dir, "archive"), fields)
		files[fields["filename"]] = true
	}
	require.Len(t, files, 4)
	require.NotContains(t, string(index), filepath.Dir(paths[0]), "no local path in a package")

	require.NoError(t, os.Remove(paths[1]))
	err = export.WACZ(io.Discard, a, export.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, paths[1])
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A version that shares its body with another URL is a revisit record, whatever its Kind. The
// record with the body is in the same package.
func TestSharedBodies(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{Share: true, MaxFile: 1})
	require.NoError(t, err)
	for i, url := range []string{"http://a.test/", "http://b.test/"} {
		_, err := a.Append(archive.Capture{URL: url, Time: began.Add(time.Duration(i) * time.Hour),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
			Body: bytes.Repeat([]byte("a template "), 300)})
		require.NoError(t, err)
	}
	lines := cdxj(t, a)
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"mime":"text/html"`)
	require.Contains(t, lines[1], `"mime":"warc/revisit"`)
	var out bytes.Buffer
	require.NoError(t, export.WACZ(&out, a, export.Options{}))
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, z))
	for _, text := range lines {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(text, " ", 3)[2]), &fields))
		requireRecordAt(t, filepath.Join(dir, "archive"), fields)
	}
	require.NoError(t, a.Close())
}

func TestEmptyArchive(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	var index, packed bytes.Buffer
	require.NoError(t, export.CDXJ(&index, a))
	require.Zero(t, index.Len())
	require.NoError(t, export.WACZ(&packed, a, export.Options{}))
	require.NoError(t, a.Close())
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrPermission }

func TestWriteErrorsAreReturned(t *testing.T) {
	a, _ := filled(t, archive.Options{})
	require.ErrorIs(t, export.CDXJ(broken{}, a), os.ErrPermission)
	require.ErrorIs(t, export.WACZ(broken{}, a, export.Options{}), os.ErrPermission)
}

func Example() {
	dir, _ := os.MkdirTemp("", "export")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	defer a.Close()
	_, _ = a.Append(archive.Capture{
		URL: "https://www.example.org/a?b=c", Time: began,
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), Body: []byte("hello"),
	})
	var index bytes.Buffer
	err := export.CDXJ(&index, a)
	key, _, _ := strings.Cut(index.String(), "{")
	fmt.Println(key, err)
	// Output: org,example)/a?b=c 20261103040506  <nil>
}
