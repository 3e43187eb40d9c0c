package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMakeDir(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", filepath.Join("a", "b", "c"), filepath.Join("a", "b"), "."} {
		require.NoError(t, MakeDir(dir, 0o700))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.True(t, info.IsDir())
	}
	require.NoError(t, os.WriteFile("file", nil, 0o600))
	require.ErrorIs(t, MakeDir("file", 0o700), syscall.ENOTDIR)
	require.ErrorIs(t, MakeDir(filepath.Join("file", "below"), 0o700), syscall.ENOTDIR)
	require.ErrorIs(t, MakeDir("", 0o700), fs.ErrNotExist)
	require.ErrorIs(t, SyncDir("missing"), fs.ErrNotExist)
}

func TestOpenDir(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := OpenDir(filepath.Join("a", "b"), 0o700)
	require.NoError(t, err)
	require.NoError(t, os.Chdir("a"))
	f, err := dir.Create("file")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.FileExists(t, filepath.Join("b", "file"))
	_, err = OpenDir("", 0o700)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
