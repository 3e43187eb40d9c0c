package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// OpenDir makes a directory as [MakeDir] does, and returns it by its absolute path: the process may change
// its working directory, and another store may have the same name there.
func OpenDir(dir string, perm fs.FileMode) (OS, error) {
	if dir == "" {
		return "", &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOENT}
	}
	path, err := filepath.Abs(dir)
	if err == nil {
		err = MakeDir(path, perm)
	}
	return OS(path), err
}

// MakeDir is like os.MkdirAll, but the names that it makes survive a power failure. So does that of a
// directory which exists, as a process may have been killed before it could see to that.
func MakeDir(dir string, perm fs.FileMode) error {
	parent := filepath.Dir(filepath.Clean(dir))
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	case err == nil:
		err = SyncDir(parent)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			err = nil // whoever made it may change the parent, and we may not
		}
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := MakeDir(parent, perm); err != nil {
		return err
	}
	// Another process may have created it since.
	if err := os.Mkdir(dir, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the new and changed names in a directory survive a power failure: syncing the files
// is not enough. It does nothing on Windows and on network file systems that cannot sync a
// directory, where there is no alternative.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	for tries := 0; Exhausted(err) && tries < 100; tries++ {
		// A process with many sockets runs out of descriptors for moments, and a store whose state is
		// half on disk cannot go on without this.
		time.Sleep(10 * time.Millisecond)
		f, err = os.Open(dir)
	}
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Exhausted reports whether a file could not be opened for lack of descriptors: nothing was done.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// RenameDir is like os.Rename, but the new name survives a power failure.
func RenameDir(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}
