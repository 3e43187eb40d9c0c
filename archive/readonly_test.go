package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// state returns the contents, times and modes of the files in a directory.
func state(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		files[e.Name()] = fmt.Sprint(info.ModTime(), info.Mode(), string(data))
	}
	return files
}

// Read-only access finds everything in an archive in any state, and does not change the directory.
func TestReadOnly(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"whole": func(string) error { return nil },
		"copied without its lock": func(dir string) error {
			return os.Remove(filepath.Join(dir, lockName))
		},
		"copied without its index": func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, indexName+"*"))
			for _, name := range names {
				err = errors.Join(err, os.Remove(name))
			}
			return err
		},
		"after a crash": func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
			if err != nil {
				return err
			}
			f, err := os.OpenFile(names[len(names)-1], os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("\x1f\x8b\x08 half a capture")
			return errors.Join(err, f.Close(), os.Rename(f.Name(), f.Name()+unfinished))
		},
		"with a run that no manifest lists": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName+"-00009999"), []byte("x"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, spill := t.TempDir(), t.TempDir()
			a := openDir(t, dir, Options{MaxFile: 2000})
			for i := range 20 {
				v := visit{fmt.Sprint("http://a.test/", i), someTime, 200, fmt.Sprint(i)}
				_, err := a.Append(v.capture())
				require.NoError(t, err)
			}
			require.NoError(t, a.Close())
			require.NoError(t, change(dir))
			before := state(t, dir)
			t.Setenv("TMPDIR", spill)
			opts := Options{ReadOnly: true}
			first, err := Open(dir, opts)
			require.NoError(t, err)
			second, err := Open(dir, opts)
			require.NoError(t, err)
			for _, a := range []*Archive{first, second} {
				for i := range 20 {
					v, err := a.At(fmt.Sprint("http://a.test/", i), time.Time{})
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(i), body(t, a, v))
				}
				s, err := a.Snapshot(Query{Memory: 1})
				require.NoError(t, err)
				require.Equal(t, 20, s.Len())
				require.NoError(t, s.Close())
				_, err = a.Verify(t.Context(), func(f Fault) {
					require.Contains(t, name, "crash", "%+v", f)
				})
				require.NoError(t, err)
				_, err = a.Append(visit{"http://a.test/", someTime, 200, "x"}.capture())
				require.ErrorIs(t, err, ErrReadOnly)
				for _, paths := range [][]string{{"x.warc.gz"}, nil} {
					_, err = a.Import(paths...)
					require.ErrorIs(t, err, ErrReadOnly)
				}
				require.NoError(t, a.Sync())
			}
			require.NoError(t, first.Close())
			require.NoError(t, second.Close())
			require.Equal(t, before, state(t, dir))
			left, err := os.ReadDir(spill)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A reader sees what the writer has appended, whatever the writer does with its files meanwhile, and
// keeps what it has begun to read.
func TestReadersBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{MaxFile: 3000})
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err, "of an archive without anything")
	refresh := func() { require.NoError(t, r.follower.refresh(r)) }
	for i := range 60 {
		url := fmt.Sprint("http://a.test/", i)
		_, err := a.Append(visit{url, someTime, 200, fmt.Sprint(i)}.capture())
		require.NoError(t, err)
		if i == 20 || i > 40 { // commits and merges replace the files of the index
			require.NoError(t, a.index.write(false))
			require.NoError(t, a.index.merge())
		}
		refresh()
		s, err := r.Snapshot(Query{Host: "a.test"})
		require.NoError(t, err)
		require.Equal(t, i+1, s.Len())
		for _, url := range []string{url, "http://a.test/0"} {
			v, err := r.At(url, time.Time{})
			require.NoError(t, err)
			require.Equal(t, strings.TrimPrefix(url, "http://a.test/"), body(t, r, v))
		}
		_, err = a.Append(visit{"http://b.test/", someTime.Add(time.Duration(i) * time.Hour), 200, "x"}.capture())
		require.NoError(t, err)
		require.NoError(t, a.index.write(false))
		refresh()
		n := 0
		for doc, err := range s.Documents() { // of the old view
			require.NoError(t, err)
			require.Contains(t, doc.URL, "http://a.test/")
			n++
		}
		require.Equal(t, i+1, n)
		require.NoError(t, s.Close())
	}
	_, err = r.Verify(t.Context(), func(f Fault) { t.Errorf("%+v", f) })
	require.NoError(t, err)
	require.NoError(t, a.Close())
	refresh()
	require.NoError(t, r.Close())
	_, err = r.At("http://a.test/0", time.Time{})
	require.ErrorIs(t, err, ErrClosed)

	_, err = Open(filepath.Join(dir, "missing"), Options{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Repair(dir, Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrReadOnly)
}

// The writer cuts off a capture that it has not acknowledged. A reader forgets it, too.
func TestReaderOfAFileThatIsCut(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{MaxFile: -1})
	first, err := a.Append(page("http://a.test/1", "x"))
	require.NoError(t, err)
	second, err := a.Append(page("http://a.test/2", "x"))
	require.NoError(t, err)
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = r.At("http://a.test/2", time.Time{})
	require.NoError(t, err)
	path := filepath.Join(dir, first.File+unfinished)
	require.NoError(t, os.Truncate(path, first.Offset+first.Length+20))
	require.NoError(t, r.follower.refresh(r))
	require.NoError(t, r.follower.refresh(r))
	_, err = r.At("http://a.test/2", time.Time{})
	require.ErrorIs(t, err, ErrNotFound)
	_, err = r.At("http://a.test/1", time.Time{})
	require.NoError(t, err)
	require.Less(t, first.Offset, second.Offset)
}

// Read-only access needs no write permission.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("this process may write everywhere")
	}
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := a.Append(visit{"http://a.test/", someTime, 200, "text"}.capture())
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, fs.ErrPermission)
	a, err = Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(body(t, a, v), "text"))
	require.NoError(t, a.Close())
}

// A reader beside a damaged index finds what the rest of that has, and says what it found.
func TestReaderOfADamagedIndex(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	appendAt := func(n int) {
		_, err := a.Append(visit{fmt.Sprint("http://a.test/", n), someTime, 200, "x"}.capture())
		require.NoError(t, err)
	}
	for n := range 50 {
		appendAt(n)
	}
	require.NoError(t, a.index.write(false))
	runs, err := filepath.Glob(filepath.Join(dir, "index-*"))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	run, err := os.ReadFile(runs[0])
	require.NoError(t, err)
	for at := range run[:100] {
		run[at] ^= 1
	}
	require.NoError(t, os.WriteFile(runs[0], run, 0o600))
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer r.Close()
	for n := 50; n < 60; n++ {
		appendAt(n)
		require.NoError(t, r.follower.refresh(r))
		_, err = r.At("http://a.test/7", time.Time{})
		require.ErrorIs(t, err, ErrIndex)
		require.ErrorIs(t, r.Stats().IndexDamage, ErrIndex)
		require.NoError(t, a.index.write(false))
	}
}

// TestRecordsBesideRotations: a file that is newer than the view of a reader does not end a walk.
func TestRecordsBesideRotations(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{MaxFile: 1})
	appendAt := func(n int) {
		_, err := a.Append(visit{fmt.Sprint("http://a.test/", n), someTime, 200, "x"}.capture())
		require.NoError(t, err)
	}
	appendAt(0)
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer r.Close()
	appendAt(1)
	appendAt(2)
	for _, archive := range []*Archive{a, r} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a-foreign.warc"), nil, 0o600))
		names, err := archive.Files()
		require.NoError(t, err)
		for _, name := range names {
			if !isOurs(strings.TrimSuffix(name, unfinished)) {
				continue
			}
			f, err := archive.OpenFile(name)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		appendAt(3) // a file that no view has yet
		responses := 0
		for rec, err := range archive.Records() {
			require.NoError(t, err)
			if rec.Type() == "response" {
				responses++
			}
		}
		require.Positive(t, responses)
	}
}
