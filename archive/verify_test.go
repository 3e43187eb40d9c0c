package archive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// verify returns the faults that Verify finds.
func verify(t testing.TB, a *Archive) (faults []Fault, checked Report) {
	t.Helper()
	checked, err := a.Verify(t.Context(), func(f Fault) { faults = append(faults, f) })
	require.NoError(t, err)
	require.Len(t, faults, checked.Faults)
	return faults, checked
}

// closedArchive returns the directory of an archive with a random history.
func closedArchive(t testing.TB, seed uint64, n int, opts Options) (string, model) {
	dir := t.TempDir()
	m := randomVisits(rand.New(rand.NewPCG(seed, 9)), n)
	a := openDir(t, dir, opts)
	for _, v := range m {
		_, err := a.Append(v.capture())
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	return dir, m
}

func warcNames(t testing.TB, dir string) []string {
	names, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

func TestVerifyOfAValidArchive(t *testing.T) {
	for _, opts := range []Options{
		{MaxFile: 5000}, {Compression: warc.Zstd}, {Level: -1},
	} {
		a, m := randomArchive(t, 1, 60, opts)
		for range 2 { // with an unfinished file, and after another append
			faults, checked := verify(t, a)
			require.Empty(t, faults)
			require.EqualValues(t, len(m), checked.Versions)
			require.GreaterOrEqual(t, checked.Records, int64(2*checked.Versions))
			v := visit{"http://later.test/", someTime, 200, "x"}
			_, err := a.Append(v.capture())
			require.NoError(t, err)
			m = append(m, v)
		}
	}
}

// A 304 says of the coding of the page that it confirms what it likes, and mostly nothing.
func TestVerifyA304OfACodedPage(t *testing.T) {
	for _, fields := range [][2]string{{"Content-Encoding: gzip\r\n", ""}, {"", "Content-Encoding: gzip\r\n"}} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{})
		for i, status := range []int{200, 304} {
			c := visit{"http://a.test/", someTime.Add(time.Duration(i) * time.Hour), status, "text"}.capture()
			c.Head = fmt.Appendf(nil, "HTTP/1.1 %d X\r\n%s\r\n", status, fields[i])
			if status == 304 {
				c.Body = nil
			}
			_, err := a.Append(c)
			require.NoError(t, err)
		}
		for range 2 {
			faults, _ := verify(t, a)
			require.Empty(t, faults)
			require.NoError(t, a.Close())
			a = openDir(t, dir, Options{Reindex: true})
		}
		require.NoError(t, a.Close())
	}
}

// A changed byte anywhere is reported with the offset of its record.
func TestVerifyFindsAChangedByte(t *testing.T) {
	dir, _ := closedArchive(t, 2, 6, Options{})
	name := warcNames(t, dir)[0]
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	records, err := readFile(whole)
	require.NoError(t, err)
	for at := 10; at < len(whole); at += 1 + len(whole)/40 {
		broken := append([]byte(nil), whole...)
		broken[at] ^= 0x55
		require.NoError(t, os.WriteFile(name, broken, 0o644))
		a := openDir(t, dir, Options{})
		faults, _ := verify(t, a)
		require.NoError(t, a.Close())
		hit := records[0]
		for _, r := range records {
			if r.offset <= int64(at) {
				hit = r
			}
		}
		if int64(at)-hit.offset < 10 && len(faults) == 0 {
			continue // the time or the system in the gzip header
		}
		require.NotEmpty(t, faults, "byte %d", at)
		require.Equal(t, filepath.Base(name), faults[0].File)
		require.Equal(t, hit.offset, faults[0].Offset)
		require.ErrorIs(t, faults[0].Err, warc.ErrDamaged)
	}
}

// The index and the files may differ after external changes to either of them.
func TestVerifyComparesIndexAndFiles(t *testing.T) {
	dir, m := closedArchive(t, 3, 30, Options{MaxFile: 4000})
	rewriteIndex(t, dir, func(all []located) []located {
		ofFirst := func(l located) bool { return l.entry.file == 0 }
		stray := all[slices.IndexFunc(all, ofFirst)]
		stray.url = "stray,a)/\x00http"
		slices.Reverse(all)
		last := slices.IndexFunc(all, ofFirst)
		return append(slices.Delete(all, last, last+1), stray)
	})
	names := warcNames(t, dir)
	require.NoError(t, os.Remove(names[2]))

	a := openDir(t, dir, Options{})
	faults, _ := verify(t, a)
	require.NoError(t, a.Close())
	kinds := map[string]int{}
	for _, f := range faults {
		switch {
		case errors.Is(f.Err, os.ErrNotExist):
			kinds["lost"]++
		case errors.Is(f.Err, errNoEntry):
			kinds["no entry"]++
		case errors.Is(f.Err, errOther):
			require.Contains(t, f.URL, "stray")
			kinds["stray"]++
		}
	}
	require.Equal(t, 1, kinds["no entry"])
	require.Equal(t, 1, kinds["stray"])
	require.Greater(t, kinds["lost"], 1, "the file and its records")

	repaired, err := Repair(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, len(names)-1, repaired.Files)
	require.Less(t, repaired.Versions, len(m))
	a = openDir(t, dir, Options{})
	faults, checked := verify(t, a)
	require.Empty(t, faults)
	require.EqualValues(t, repaired.Versions, checked.Versions)
	require.NoError(t, a.Close())
}

// rewriteIndex changes the entries of the index of a closed archive.
func rewriteIndex(t testing.TB, dir string, change func([]located) []located) {
	t.Helper()
	old := openTestIndex(t, vfs.OS(dir))
	var all []located
	for l, err := range old.scan(urlkey.All) {
		require.NoError(t, err)
		all = append(all, *l)
	}
	require.NoError(t, old.close(false))
	x, err := openIndex(vfs.OS(dir), newIndex)
	require.NoError(t, err)
	x.names, x.files = old.names, old.files
	for _, l := range change(all) {
		x.replace(l.url, &l.entry)
	}
	require.NoError(t, x.close(true))
}

func TestVerifyCanBeCanceled(t *testing.T) {
	a, _ := randomArchive(t, 1, 10, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Verify(ctx, func(Fault) {})
	require.ErrorIs(t, err, context.Canceled)
}

func TestRepairOfAnOpenArchive(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := Repair(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, a.Close())
}

// A broken index never causes a panic, and can be repaired.
func TestBrokenIndexIsRepaired(t *testing.T) {
	dir, m := closedArchive(t, 4, 40, Options{})
	runs, err := filepath.Glob(filepath.Join(dir, indexName+"-*"))
	require.NoError(t, err)
	path := runs[0]
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	index := readDir(t, dir)
	breaks := map[string]func([]byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"garbage": func(b []byte) []byte { return []byte(strings.Repeat("garbage", len(b)/7)) },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
	}
	for i := range 5 {
		breaks[fmt.Sprintf("cut-%d", i)] = func(b []byte) []byte { return b[:len(b)*i/5] }
		breaks[fmt.Sprintf("part-%d", i)] = func(b []byte) []byte {
			b = append([]byte(nil), b...)
			for at := len(b) * i / 5; at < len(b)*(i+1)/5; at += 7 {
				b[at] ^= 0xa5
			}
			return b
		}
	}
	for name, breakIt := range breaks {
		t.Run(name, func(t *testing.T) {
			for name, data := range index {
				if strings.HasPrefix(name, indexName) {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
				}
			}
			require.NoError(t, os.WriteFile(path, breakIt(whole), 0o644))
			if a, err := Open(dir, Options{Compressors: 1}); err == nil {
				for _, v := range m {
					_, _ = a.Versions(v.url)
				}
				_, _ = a.Verify(t.Context(), func(Fault) {})
				_ = a.Close()
			}
			repaired, err := Repair(dir, Options{})
			require.NoError(t, err)
			require.Equal(t, len(m), repaired.Versions)
			a := openDir(t, dir, Options{})
			requireModel(t, a, m)
			require.NoError(t, a.Close())
		})
	}
}

// Wherever a power failure cuts the last file, the archive opens with its complete captures, and is
// writable.
func TestFileCutAnywhere(t *testing.T) {
	dir, m := closedArchive(t, 5, 5, Options{})
	name := warcNames(t, dir)[0]
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	index := readDir(t, dir)
	captures, err := readCaptures(whole)
	require.NoError(t, err)
	require.Len(t, captures, len(m))
	for at := 0; at <= len(whole); at += 1 + len(whole)/60 {
		for _, indexed := range []bool{false, true} { // the index is older or newer than the file
			dir := t.TempDir()
			open := filepath.Join(dir, filepath.Base(name)+unfinished)
			require.NoError(t, os.WriteFile(open, whole[:at], 0o644))
			for name, data := range index {
				if indexed && strings.HasPrefix(name, indexName) {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
				}
			}
			want := 0
			for _, c := range captures {
				if c.offset+c.length <= int64(at) {
					want++
				}
			}
			a := openDir(t, dir, Options{})
			faults, checked := verify(t, a)
			if indexed { // the entries stay, and the missing part is reported
				require.EqualValues(t, len(m), checked.Versions)
				lost := a.Recovered().Damage
				if at == len(whole) {
					require.Empty(t, faults)
					require.Empty(t, lost)
				} else {
					missing := len(m) - want
					require.Equal(t, []Fault{{File: filepath.Base(name), Offset: int64(at),
						Length: int64(len(whole) - at), Err: errShorter}}, lost)
					require.GreaterOrEqual(t, len(faults), 1+missing)
				}
			} else {
				require.Empty(t, faults, "cut at %d", at)
				require.EqualValues(t, want, checked.Versions, "cut at %d", at)
			}
			_, err := a.Append(page("http://next.test/", "x"))
			require.NoError(t, err)
			require.NoError(t, a.Close())
		}
	}
}

// Files of other programs are indexed in place.
func TestForeignFilesInTheDirectory(t *testing.T) {
	root := os.Getenv("SPINNERET_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	dir := t.TempDir()
	for _, name := range []string{"warcio/example.warc", "warcio/example-iana.org-chunked.warc",
		"warcio/example-bad.warc.gz.bad", "slyrz+warc/test.warc",
		"internetarchive+gowarc/corrupted-mid-record.warc.gz.open",
		"internetarchive+gowarc/good.warc.gz.open", "warcio/example-trunc.warc"} {
		data, err := os.ReadFile(filepath.Join(root, "suites", "warc", name))
		if err != nil {
			t.Skipf("no data (set SPINNERET_DATA): %v", err)
		}
		base := strings.TrimSuffix(filepath.Base(name), ".bad")
		require.NoError(t, os.WriteFile(filepath.Join(dir, base), data, 0o644))
	}
	before := readDir(t, dir)
	a := openDir(t, dir, Options{})
	v, err := a.At("http://www.iana.org/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, 200, v.Status)
	require.Contains(t, body(t, a, v), "Internet Assigned Numbers Authority")
	versions, err := a.Versions("http://example.com/")
	require.NoError(t, err)
	// A response, and a revisit of it. Records in one member have no address.
	require.Len(t, versions, 2)
	require.Equal(t, versions[0].Content, versions[1].Content)
	require.Equal(t, 3, a.found.Versions)
	require.Len(t, a.found.Damage, 2)
	require.Positive(t, a.found.Unnamed)
	require.NoError(t, a.Close())
	for name, data := range before {
		require.Equal(t, data, readDir(t, dir)[name], "modified")
	}
}

// TestRepairWithoutFiles opens an archive whose files are gone: nothing is left to index.
func TestRepairWithoutFiles(t *testing.T) {
	dir, _ := closedArchive(t, 1, 5, Options{})
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		if strings.Contains(f.Name(), ".warc") || strings.HasPrefix(f.Name(), indexName+"-") {
			require.NoError(t, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	a := openDir(t, dir, Options{})
	require.ErrorIs(t, a.Stats().IndexDamage, ErrIndex)
	require.NoError(t, a.Close())
	_, err = Repair(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, openDir(t, dir, Options{}).Close())
}

// If a file is lost, its bodies are missing to the revisit records in other files, even after the
// index has forgotten the file.
func TestVerifyAfterALostFile(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{MaxFile: 1})
	require.NoError(t, err)
	c := Capture{URL: "http://a.test/", Time: time.Unix(1e9, 0),
		Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: []byte(strings.Repeat("body", 1000))}
	for range 3 {
		_, err := a.Append(c)
		require.NoError(t, err)
		c.Time = c.Time.Add(time.Hour)
	}
	require.NoError(t, a.Close())
	names, err := a.Files()
	require.NoError(t, err)
	require.Len(t, names, 3)
	require.NoError(t, os.Remove(filepath.Join(dir, names[0])))
	a, err = Open(dir, Options{Reindex: true})
	require.NoError(t, err)
	report, err := a.Verify(t.Context(), func(f Fault) {
		require.ErrorIs(t, f.Err, errReference)
		require.Contains(t, names[1:], f.File)
	})
	require.NoError(t, err)
	require.Equal(t, 2, report.Faults)
	require.NoError(t, a.Close())
}

// The tombstone of another archive says nothing of the files of this one.
func TestVerifyOfImportedTombstones(t *testing.T) {
	dir := t.TempDir()
	other := openDir(t, dir, Options{})
	require.NoError(t, appendText(other, "http://a.test/", "secret", 1))
	require.NoError(t, appendText(other, "http://b.test/", "kept", 1))
	_, err := other.Erase(t.Context(), Selection{URL: "http://a.test/"}, "asked for")
	require.NoError(t, err)
	names, err := other.Files()
	require.NoError(t, err)
	require.NoError(t, other.Close())
	a := openDir(t, t.TempDir(), Options{})
	for _, name := range names {
		_, err = a.Import(filepath.Join(dir, name))
		require.NoError(t, err)
	}
	faults, _ := verify(t, a)
	require.Empty(t, faults)
}
