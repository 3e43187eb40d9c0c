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
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	require.Subset(t, []string{indexName + ".manifest", lockName}, names)
}

func TestOpenBelowAFile(t *testing.T) {
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

func TestOpenWithoutWritePermission(t *testing.T) {
	readOnly := filepath.Join(t.TempDir(), "read-only")
	require.NoError(t, os.Mkdir(readOnly, 0o555))
	if f, err := os.Create(filepath.Join(readOnly, "x")); err == nil {
		require.NoError(t, f.Close())
		t.Skip("this user may write everywhere")
	}
	_, err := Open(readOnly, Options{})
	require.ErrorIs(t, err, os.ErrPermission)
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

// An empty name, as from a flag that was not set, would make the working directory an archive.
func TestOpenNeedsAName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, opts := range []Options{{}, {ReadOnly: true}, {Reindex: true}} {
		_, err := Open("", opts)
		require.ErrorContains(t, err, "no directory given")
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries)
}
