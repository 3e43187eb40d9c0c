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
			opts := Options{ReadOnly: true, SpillDir: spill}
			first, err := Open(dir, opts)
			require.NoError(t, err)
			second, err := Open(dir, opts)
			require.NoError(t, err, "readers share the lock")
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
				_, err = a.Import("x.warc.gz")
				require.ErrorIs(t, err, ErrReadOnly)
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

// A writer excludes readers, and readers exclude a writer.
func TestReadOnlyLocks(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := Open(dir, Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, a.Close())
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, r.Close())
	require.NoError(t, openDir(t, dir, Options{}).Close())

	_, err = Open(filepath.Join(dir, "missing"), Options{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Repair(dir, Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrReadOnly)
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
