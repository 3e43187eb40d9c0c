package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOSAndMemAgree runs the same operations on all implementations.
func TestOSAndMemAgree(t *testing.T) {
	for name, d := range map[string]FS{"OS": OS(t.TempDir()), "Mem": NewMem(), "Shared": Shared{OS(t.TempDir())}} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Open("a")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorIs(t, d.Rename("a", "b"), fs.ErrNotExist)
			require.ErrorIs(t, d.Remove("a"), fs.ErrNotExist)

			f, err := d.Create("a")
			require.NoError(t, err)
			n, err := f.WriteAt([]byte("hello"), 3)
			require.NoError(t, err)
			require.Equal(t, 5, n)
			_, err = f.WriteAt([]byte("J"), 3)
			require.NoError(t, err)
			size, err := f.Size()
			require.NoError(t, err)
			require.EqualValues(t, 8, size)
			f.Start(0, 8)
			f.Random()
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())

			require.NoError(t, d.Rename("a", "b"))
			require.NoError(t, d.Rename("b", "b"))
			_, err = d.Create("c")
			require.NoError(t, err)
			require.NoError(t, d.Sync())
			names, err := d.List()
			require.NoError(t, err)
			require.Equal(t, []string{"b", "c"}, names)

			f, err = d.Open("b")
			require.NoError(t, err)
			b := make([]byte, 9)
			n, err = f.ReadAt(b, 0)
			require.Equal(t, 8, n)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, "\x00\x00\x00Jello\x00", string(b))
			_, err = f.ReadAt(b, 8)
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, f.Truncate(5))
			_, err = f.WriteAt([]byte("!"), 6)
			require.NoError(t, err)
			n, err = f.ReadAt(b, 0)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, "\x00\x00\x00Je\x00!", string(b[:n]))
			require.NoError(t, f.Close())

			f, err = d.Create("b")
			require.NoError(t, err)
			size, err = f.Size()
			require.NoError(t, err)
			require.Zero(t, size)
			require.NoError(t, f.Close())
			require.NoError(t, d.Remove("b"))

			lock, err := d.Lock("lock")
			require.NoError(t, err)
			_, err = d.Lock("lock")
			require.ErrorIs(t, err, ErrLocked)
			require.NoError(t, lock.Close())
			lock, err = d.Lock("lock")
			require.NoError(t, err)
			require.NoError(t, lock.Close())
		})
	}
}

// TestMapIsTheFile checks that writes to the memory appear in the file and vice versa, and that
// they persist. The size only matters when the file is created.
func TestMapIsTheFile(t *testing.T) {
	for name, d := range map[string]FS{"OS": OS(t.TempDir()), "Mem": NewMem()} {
		t.Run(name, func(t *testing.T) {
			m, err := d.Map("a", 4096)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			require.NoError(t, err)
			require.Equal(t, make([]byte, 4096), m.Bytes)
			require.NoError(t, m.Write(100, []byte("hello")))
			require.NoError(t, m.Store(8, 0x0102030405060708))
			f, err := d.Open("a")
			require.NoError(t, err)
			b := make([]byte, 4096)
			_, err = f.ReadAt(b, 0)
			require.NoError(t, err)
			require.Equal(t, "hello", string(b[100:105]))
			require.Equal(t, []byte{8, 7, 6, 5, 4, 3, 2, 1}, b[8:16])
			_, err = f.WriteAt([]byte("J"), 100)
			require.NoError(t, err)
			require.Equal(t, "Jello", string(m.Bytes[100:105]))
			require.NoError(t, f.Close())
			require.NoError(t, m.Close())
			m, err = d.Map("a", 8192)
			require.NoError(t, err)
			require.Len(t, m.Bytes, 4096)
			require.Equal(t, "Jello", string(m.Bytes[100:105]))
			require.NoError(t, m.Close())
		})
	}
}

// TestMapFaults writes to mapped memory beyond the end of the truncated file. This must return an
// error, as on a copy-on-write file system with a full disk.
func TestMapFaults(t *testing.T) {
	d := OS(t.TempDir())
	m, err := d.Map("a", 64<<10)
	if errors.Is(err, errors.ErrUnsupported) || runtime.GOOS == "windows" {
		t.Skip("this system cannot truncate a mapped file")
	}
	require.NoError(t, err)
	require.NoError(t, m.Write(0, []byte("there")))
	require.NoError(t, os.Truncate(filepath.Join(string(d), "a"), 0))
	require.ErrorIs(t, m.Write(32<<10, []byte("gone")), ErrFault)
	require.ErrorIs(t, m.Store(8, 1), ErrFault)
	require.Panics(t, func() { _ = m.Write(64<<10, []byte("beyond")) })
	require.NoError(t, m.Close())
}

func TestMissingDirectory(t *testing.T) {
	d := OS(t.TempDir() + "/none")
	_, err := d.Create("a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = d.List()
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = d.Lock("a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, d.Sync(), fs.ErrNotExist)
}

// TestShared checks that read-only files can be opened, and that only regular files are listed.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	d := Shared{OS(dir)}
	f, err := d.Create("a")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	info, err := os.Stat(filepath.Join(dir, "a"))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.EqualValues(t, 0o600, info.Mode().Perm())
		require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	names, err := d.List()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o444))
	f, err = d.Open("a")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
