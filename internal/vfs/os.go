package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OS is the name of a directory of the operating system.
type OS string

var _ FS = OS("")

// Open opens an existing file for reading and writing.
func (d OS) Open(name string) (File, error) {
	return wrap(os.OpenFile(d.path(name), os.O_RDWR, 0))
}

// Create creates an empty file that only the owner may read.
func (d OS) Create(name string) (File, error) {
	return wrap(os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600))
}

// Rename replaces an existing file.
func (d OS) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Remove removes a file.
func (d OS) Remove(name string) error { return os.Remove(d.path(name)) }

// List returns the names of all files, in order.
func (d OS) List() ([]string, error) {
	return d.list(func(t fs.FileMode) bool { return !t.IsDir() })
}

// list returns the names of the files whose type is wanted, in order.
func (d OS) list(want func(fs.FileMode) bool) ([]string, error) {
	entries, err := os.ReadDir(string(d))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if want(e.Type()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Sync makes creations, renames and removals durable.
func (d OS) Sync() error { return SyncDir(string(d)) }

func (d OS) path(name string) string { return filepath.Join(string(d), name) }

type osFile struct{ *os.File }

// Shared is a directory of the operating system in which others put files, too. Open accepts
// read-only files, and List skips everything but regular files, such as symbolic links.
type Shared struct{ OS }

// Open opens an existing file for reading and, if permitted, for writing.
func (d Shared) Open(name string) (File, error) {
	f, err := d.OS.Open(name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return wrap(os.Open(d.path(name)))
	}
	return f, err
}

// List returns the names of all regular files, in order.
func (d Shared) List() ([]string, error) { return d.list(fs.FileMode.IsRegular) }

// wrap prevents a nil *os.File from becoming a non-nil File.
func wrap(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("vfs: size: %w", err)
	}
	return info.Size(), nil
}

// allocate extends a new file to size, and returns the size of the file. It writes zeros, because
// any later write to a sparse file may find the disk full. If there is not enough space, it
// truncates the file, which would otherwise look complete later.
func allocate(f *os.File, size int) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("vfs: size: %w", err)
	}
	if info.Size() >= minMapSize {
		return int(info.Size()), nil
	}
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		return 0, errors.Join(err, f.Truncate(0))
	}
	return size, nil
}
