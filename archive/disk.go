package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// lockName is the name of the file that is locked while an archive is open.
const lockName = "lock"

// lockWait is how long Open waits for another process that is about to end.
const lockWait = time.Second

// openDirectory creates a directory and its missing parents. Its path is made absolute, because the
// process may change its working directory.
func openDirectory(dir string) (path string, _ vfs.FS, err error) {
	if path, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	return path, vfs.Shared{OS: vfs.OS(path)}, vfs.MakeDir(path, 0o700)
}

// lock excludes other processes.
func lock(files vfs.FS) (io.Closer, error) {
	for began := time.Now(); ; time.Sleep(lockWait / 50) {
		l, err := files.Lock(lockName)
		if !errors.Is(err, vfs.ErrLocked) {
			return l, err
		}
		if time.Since(began) >= lockWait {
			return nil, ErrLocked
		}
	}
}

// exists reports whether there is a file of that name.
func exists(files vfs.FS, name string) bool {
	f, err := files.Open(name)
	if err == nil {
		_ = f.Close() // it was not written to
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// rename gives a file another name, durably. Its contents must be on disk already.
func (a *Archive) rename(from, to string) error {
	if err := a.fs.Rename(from, to); err != nil {
		return err
	}
	return a.fs.Sync()
}

// source is a WARC file open for reading.
type source struct {
	io.ReaderAt
	io.Closer
	size int64
	open bool // it may still be written to
}

// ahead starts reading a range before it is needed, if the system supports that.
func (s *source) ahead(at, n int64) {
	switch f := s.ReaderAt.(type) {
	case interface{ Ahead(at, n int64) }:
		f.Ahead(at, n)
	case *os.File:
		vfs.Ahead(f, at, n)
	}
}

// openFile opens a file of the archive, which may be renamed concurrently, or an imported one.
func (a *Archive) openFile(name string) (*source, error) {
	if isImport(name) {
		return openImported(name)
	}
	var f vfs.File
	var err error
	onDisk := ""
	for _, onDisk = range []string{name, name + unfinished, name + moving, name} {
		if f, err = a.fs.Open(onDisk); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("archive: read: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive: read: %w", err), f.Close())
	}
	return &source{f, f, size, onDisk == name+unfinished}, nil
}

// isImport reports whether a name is that of an imported file, and not of one in the directory.
func isImport(name string) bool { return filepath.IsAbs(name) }

// openImported opens an imported file. It rejects files other than regular ones before opening them:
// opening a pipe may block.
func openImported(path string) (*source, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &source{f, f, info.Size(), false}, nil
}
