package archive

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenMakesDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		a, err := Open(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, indexName, entries[0].Name())
}

func TestOpenWhereNoDirectoryCanBe(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(taken, nil, 0o644))
	below := filepath.Join(taken, "a")
	for _, path := range []string{taken, below, filepath.Join(below, "b")} {
		_, err := Open(path, Options{})
		require.ErrorIs(t, err, syscall.ENOTDIR)
		require.ErrorContains(t, err, taken)
		require.ErrorContains(t, err, "give a directory")
	}
}

func TestOpenWhereNothingMayBeWritten(t *testing.T) {
	readOnly := filepath.Join(t.TempDir(), "read-only")
	require.NoError(t, os.Mkdir(readOnly, 0o555))
	if f, err := os.Create(filepath.Join(readOnly, "x")); err == nil {
		require.NoError(t, f.Close())
		t.Skip("this user may write everywhere")
	}
	_, err := Open(readOnly, Options{})
	require.ErrorIs(t, err, os.ErrPermission)
}

func TestDirectoryOfTheSystem(t *testing.T) {
	d, err := makeDir(t.TempDir())
	require.NoError(t, err)
	f, err := d.create("a")
	require.NoError(t, err)
	_, err = d.create("a")
	require.ErrorIs(t, err, os.ErrExist, "a file is never overwritten")

	_, err = f.WriteAt([]byte("hello, torn"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(5))
	_, err = f.WriteAt([]byte("!"), 5)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, d.rename("a", "b"))
	require.NoError(t, d.sync())
	data, err := os.ReadFile(d.path("b"))
	require.NoError(t, err)
	require.Equal(t, "hello!", string(data))

	require.NoError(t, os.Mkdir(d.path("directory.warc.gz"), 0o755))
	names, err := d.list()
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names)
	require.NoError(t, d.remove("b"))
	names, err = d.list()
	require.NoError(t, err)
	require.Empty(t, names)
}

// The working directory may change; the archive stays where it was opened.
func TestRelativeDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	a, err := Open("warcs", Options{})
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	loc, err := a.Append(page("http://a.test/", "x"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.FileExists(t, filepath.Join(dir, "warcs", loc.File))
}
