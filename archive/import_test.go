package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// foreignFile writes a WARC file as another program might, with one response for each body, and
// returns its path. URLs are http://foreign.test/0 and so on.
func foreignFile(t testing.TB, name string, o warc.EncoderOptions, bodies ...string) string {
	t.Helper()
	enc, err := warc.NewEncoder(o)
	require.NoError(t, err)
	out := &bytes.Buffer{}
	for i, body := range bodies {
		_, _, err := enc.Encode(out, &warc.Head{Type: "response", Date: someTime,
			TargetURI: fmt.Sprintf("http://foreign.test/%d", i), ContentType: "application/http"},
			[]byte("HTTP/1.1 200 OK\r\n\r\n"), []byte(body))
		require.NoError(t, err)
	}
	data := out.Bytes()
	if name == dictFile {
		data = withDict(t, data, encoderDict(t))
	}
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

// dictFile is the name of a foreignFile with a dictionary.
const dictFile = "dict.warc.zst"

// requireForeign requires that the pages of foreignFile are found with their bodies.
func requireForeign(t testing.TB, a *Archive, path string, bodies ...string) {
	t.Helper()
	for i, want := range bodies {
		v, err := a.At(fmt.Sprintf("http://foreign.test/%d", i), time.Time{})
		require.NoError(t, err)
		require.Equal(t, path, v.Location.File)
		require.Equal(t, want, body(t, a, v))
	}
}

func TestImportIndexesInPlace(t *testing.T) {
	for name, o := range map[string]warc.EncoderOptions{
		"x.warc.gz": {}, "x.warc": {Compression: warc.None}, "x.warc.zst": {Compression: warc.Zstd},
		dictFile: {Compression: warc.None}, "no extension": {},
	} {
		t.Run(name, func(t *testing.T) {
			path := foreignFile(t, name, o, "one", "two", "")
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			dir := t.TempDir()
			a := openDir(t, dir, Options{})
			_, err = a.Append(page("http://own.test/", "own"))
			require.NoError(t, err)
			found, err := a.Import(path)
			require.NoError(t, err)
			require.Equal(t, Report{Files: 1, Versions: 3}, found)
			for range 2 { // at once, and with a new index
				requireForeign(t, a, path, "one", "two", "")
				requireEverywhere(t, a, path)
				require.NoError(t, a.Close())
				repaired, err := Repair(dir, Options{})
				require.NoError(t, err)
				require.Equal(t, 4, repaired.Versions)
				require.Empty(t, repaired.Missing)
				a = openDir(t, dir, Options{})
			}
			require.NoError(t, a.Close())
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after), "Import must not modify the file")
		})
	}
}

// requireEverywhere requires that all other methods include the imported file.
func requireEverywhere(t testing.TB, a *Archive, path string) {
	t.Helper()
	names, err := a.Files()
	require.NoError(t, err)
	require.Equal(t, path, names[len(names)-1])
	s, err := a.Snapshot(Query{Host: "foreign.test"})
	require.NoError(t, err)
	require.Len(t, documents(t, s), 3)
	require.NoError(t, s.Close())
	require.Len(t, validAt(t, a, time.Time{}), 4, "with the appended page")
	faults, checked := verify(t, a)
	require.Empty(t, faults)
	require.EqualValues(t, 4, checked.Versions)
	require.Equal(t, len(names), checked.Files)
	require.Empty(t, a.Missing())
	part, err := a.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, part.Close())
}

// All methods report a missing import. When the file is back, so are its versions.
func TestMissingImport(t *testing.T) {
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{}, "one", "two")
	away := path + ".away"
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := a.Append(page("http://own.test/", "own"))
	require.NoError(t, err)
	_, err = a.Import(path)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, away))
	for range 2 { // the file disappears while the archive is open, or before
		require.Equal(t, []string{path}, a.Missing())
		v, err := a.At("http://foreign.test/0", time.Time{})
		require.NoError(t, err, "it is in the index")
		_, err = a.Read(v.Content)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, path)
		faults, _ := verify(t, a)
		require.Equal(t, path, faults[0].File)
		require.EqualValues(t, -1, faults[0].Offset)
		require.ErrorIs(t, faults[0].Err, os.ErrNotExist)
		require.Len(t, faults, 3, "the file and its two versions")
		v, err = a.At("http://own.test/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, "own", body(t, a, v))
		require.NoError(t, a.Close())
		a = openDir(t, dir, Options{})
	}
	require.NoError(t, a.Close())

	repaired, err := Repair(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, Report{Files: 1, Versions: 1, Missing: []string{path}}, repaired)
	a = openDir(t, dir, Options{})
	require.Equal(t, []string{path}, a.Missing(), "it is listed, but not in the new index")
	faults, _ := verify(t, a)
	require.Len(t, faults, 1)
	_, err = a.At("http://foreign.test/0", time.Time{})
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, a.Close())

	require.NoError(t, os.Rename(away, path))
	a = openDir(t, dir, Options{})
	require.Empty(t, a.Missing())
	requireForeign(t, a, path, "one", "two")
	require.NoError(t, a.Close())
}

// Missing and Repair also report a missing file of the archive's own directory.
func TestMissingOwnFile(t *testing.T) {
	dir, _ := closedArchive(t, 3, 30, Options{MaxFile: 4000})
	lost := warcNames(t, dir)[1]
	require.NoError(t, os.Remove(lost))
	a := openDir(t, dir, Options{})
	require.Equal(t, []string{filepath.Base(lost)}, a.Missing())
	require.NoError(t, a.Close())
	repaired, err := Repair(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Base(lost)}, repaired.Missing)
	a = openDir(t, dir, Options{})
	require.Empty(t, a.Missing(), "it is not in the new index")
	require.NoError(t, a.Close())
}

// An imported file may have grown.
func TestChangedImport(t *testing.T) {
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{}, "one", "two")
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	other, err := os.ReadFile(foreignFile(t, "z", warc.EncoderOptions{}, "other"))
	require.NoError(t, err)
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	for _, tt := range []struct {
		name     string
		data     []byte
		versions int
		want     []string
	}{
		{"the first time", first, 2, []string{"one", "two"}},
		{"again, unchanged", first, 0, []string{"one", "two"}},
		{"after an append", slices.Concat(first, other), 1, []string{"other", "two"}},
		{"after another append", slices.Concat(first, other, other), 1, []string{"other", "two"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, tt.data, 0o644))
			found, err := a.Import(path)
			require.NoError(t, err)
			require.Equal(t, Report{Files: 1, Versions: tt.versions}, found)
			requireForeign(t, a, path, tt.want...)
			faults, _ := verify(t, a)
			require.Empty(t, faults)
		})
	}
	require.NoError(t, a.Close())
}

// All methods report a file that became shorter as damage, with its length.
// Its entries stay until the next Repair.
func TestFileThatBecameShorter(t *testing.T) {
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{}, "one", "two", "three")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	second := bytes.Index(whole[1:], []byte("\x1f\x8b\x08")) + 1
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err = a.Import(path)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, os.WriteFile(path, whole[:second], 0o644))
	want := Fault{File: path, Offset: int64(second), Length: int64(len(whole) - second), Err: errShorter}
	for range 2 {
		a = openDir(t, dir, Options{})
		require.Equal(t, []Fault{want}, a.Recovered().Damage)
		found, err := a.Import(path)
		require.NoError(t, err)
		require.Equal(t, []Fault{want}, found.Damage)
		v, err := a.At("http://foreign.test/2", time.Time{})
		require.NoError(t, err, "it is still in the index")
		_, err = a.Read(v.Content)
		require.ErrorIs(t, err, warc.ErrDamaged)
		faults, _ := verify(t, a)
		require.Len(t, faults, 3, "the file and its two versions")
		require.ErrorIs(t, faults[0].Err, errShorter)
		require.Equal(t, want.Offset, faults[0].Offset)
		require.NoError(t, a.Close())
	}
	repaired, err := Repair(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, []Fault{want}, repaired.Damage)
	require.Equal(t, 1, repaired.Versions)
	a = openDir(t, dir, Options{})
	require.Empty(t, a.Recovered().Damage)
	require.NoError(t, a.Close())
}

func TestRefusedImports(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := a.Append(page("http://own.test/", "own"))
	require.NoError(t, err)
	own := warcNames(t, dir)[0]
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no WARC\n", 20_000)), 0o644))
	good := foreignFile(t, "x.warc.gz", warc.EncoderOptions{}, "one")
	for _, tt := range []struct {
		name, path, want string
		is               error
	}{
		{"a file of the archive", own, "belongs to it already", nil},
		{"no file", filepath.Join(dir, "sub", "lost"), "lost", fs.ErrNotExist},
		{"a directory", t.TempDir(), "not a regular file", nil},
		{"a line break", filepath.Join(dir, "sub", "a\nb"), "line break", nil},
		{"another format", text, "byte 0: ", warc.ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := a.Import(good, tt.path)
			require.ErrorContains(t, err, "archive: import "+tt.path+": ")
			require.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			require.Equal(t, 1, found.Files, "the first path")
			require.Equal(t, []string{good}, a.imports.list())
		})
	}
	require.NoError(t, a.Close())
	_, err = a.Import(good)
	require.ErrorIs(t, err, ErrClosed)
}

// Damage is reported with position and length. Records after it are not imported.
func TestImportOfABrokenFile(t *testing.T) {
	two := strings.Repeat("two ", 99)
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{}, "one", two, "three")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	second := bytes.Index(data[1:], []byte("\x1f\x8b\x08")) + 1
	third := bytes.Index(data[second+1:], []byte("\x1f\x8b\x08")) + second + 1
	all := len(data)
	broken := slices.Concat(data[:second], []byte("xxxx"), data[second+4:])
	for name, tt := range map[string]struct {
		data               []byte
		versions, unnamed  int
		offset, end, fault int
	}{
		"in the middle":         {broken, 1, 0, second, all, 1},
		"at the end":            {data[:all-5], 2, 0, third, all - 5, 1},
		"an empty file":         {nil, 0, 0, 0, 0, 0},
		"records in one member": {joined(t, data), 0, 3, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, tt.data, 0o644))
			dir := t.TempDir()
			a := openDir(t, dir, Options{})
			found, err := a.Import(path)
			require.NoError(t, err)
			for range 2 {
				require.Equal(t, []int{1, tt.versions, tt.unnamed},
					[]int{found.Files, found.Versions, found.Unnamed})
				require.Len(t, found.Damage, tt.fault)
				for _, d := range found.Damage {
					require.ErrorIs(t, d.Err, warc.ErrDamaged)
					d.Err = nil
					require.Equal(t, Fault{File: path, Offset: int64(tt.offset),
						Length: int64(tt.end - tt.offset)}, d)
				}
				faults, checked := verify(t, a)
				require.Len(t, faults, tt.fault)
				require.EqualValues(t, tt.versions, checked.Versions)
				require.NoError(t, a.Close())
				found, err = Repair(dir, Options{})
				require.NoError(t, err)
				a = openDir(t, dir, Options{})
			}
			require.NoError(t, a.Close())
		})
	}
}

// joined packs the records of a file into one member, so that none has its own address.
func joined(t testing.TB, data []byte) []byte {
	records, err := readFile(data)
	require.NoError(t, err)
	require.Len(t, records, 3)
	gz, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	text, err := io.ReadAll(gz)
	require.NoError(t, err)
	return gzipped(t, text)
}

func TestListOfImports(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
		fault      string
	}{
		{"nothing", "", nil, ""},
		{"two", "/a\n/b c\n", []string{"/a", "/b c"}, ""},
		{"out of order, with a duplicate", "/b\n/a\n/b\n", []string{"/a", "/b"}, ""},
		{"CRLF and blank lines", "/a\r\n\r\n\n/b", []string{"/a", "/b"}, ""},
		{"a path that is not clean", "/a/../b//c\n", []string{"/b/c"}, ""},
		{"a relative path", "/a\nb\n", nil, `line 2: "b" is not an absolute path`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			list := filepath.Join(dir, importsName)
			require.NoError(t, os.WriteFile(list, []byte(tt.text), 0o644))
			a, err := Open(dir, Options{})
			if tt.fault != "" {
				require.ErrorContains(t, err, tt.fault)
				require.ErrorContains(t, err, importsName)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, a.imports.list())
			require.Equal(t, tt.want, a.Missing())
			require.NoError(t, a.Close())
		})
	}
}

// Repair drops an import that was removed from the list.
func TestImportRemovedFromList(t *testing.T) {
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{}, "one")
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := a.Import(path)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, importsName)))
	repaired, err := Repair(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, Report{Missing: []string{path}}, repaired, "it is reported once more")
	a = openDir(t, dir, Options{})
	require.Empty(t, a.Missing())
	require.NoError(t, a.Close())
}

// Another goroutine appends and looks up while a file is imported in many commits.
func TestImportDuringAppends(t *testing.T) {
	var bodies []string
	for i := range 300 {
		bodies = append(bodies, fmt.Sprint("body ", i))
	}
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{Level: 1}, bodies...)
	a := openDir(t, t.TempDir(), Options{})
	commitAt(a, 20)
	done := make(chan error)
	go func() {
		for i := range 100 {
			if _, err := a.Append(page(fmt.Sprintf("http://own.test/%d", i), "x")); err != nil {
				done <- err
				return
			}
			if _, err := a.At("http://foreign.test/7", time.Time{}); err != nil &&
				!errors.Is(err, ErrNotFound) {
				done <- err
				return
			}
		}
		done <- nil
	}()
	found, err := a.Import(path)
	require.NoError(t, errors.Join(err, <-done))
	require.Equal(t, 300, found.Versions)
	requireForeign(t, a, path, bodies...)
	faults, checked := verify(t, a)
	require.Empty(t, faults)
	require.EqualValues(t, 400, checked.Versions)
	require.NoError(t, a.Close())
}

// Files of other tools, some of them broken on purpose, are either imported or refused with an
// offset. All indexed records can be read.
func TestImportOfAllForeignFiles(t *testing.T) {
	root := os.Getenv("SPINNERET_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	var paths []string
	suites := filepath.Join(root, "suites", "warc")
	_ = filepath.WalkDir(suites, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(path, "arc") {
			paths = append(paths, path)
		}
		return nil
	})
	if len(paths) == 0 {
		t.Skip("no data (set SPINNERET_DATA)")
	}
	a := openDir(t, t.TempDir(), Options{})
	versions, refused := 0, 0
	for _, path := range paths {
		found, err := a.Import(path)
		versions += found.Versions
		var damage *warc.DamageError
		if err != nil {
			require.ErrorAs(t, err, &damage, path)
			refused++
		}
	}
	require.Positive(t, versions)
	require.Positive(t, refused)
	s, err := a.Snapshot(Query{Relations: allen.Found, Failed: true})
	require.NoError(t, err)
	for doc, err := range s.Documents() {
		require.NoError(t, err, "%+v", doc.Version)
	}
	require.NoError(t, s.Close())
	_, err = a.Verify(t.Context(), func(f Fault) {
		require.True(t, errors.Is(f.Err, warc.ErrDamaged), "%+v", f)
	})
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

// The URLs to which revisits refer are chosen by the writer of a file, and kept until all files are indexed.
func TestDeferredVersionsAreBounded(t *testing.T) {
	a := &Archive{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 100 {
		header := strings.Repeat("x", 1<<20)
		a.deferVersion("key", &entry{}, reference{url: header[:100]})
		a.deferVersion("key", &entry{}, reference{url: header})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, a.weight, maxDeferredBytes)
	require.Greater(t, len(a.deferred), 100)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2*maxDeferredBytes), "headers stay in memory")
	runtime.KeepAlive(a)
}
