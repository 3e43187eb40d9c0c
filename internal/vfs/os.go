package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OS is the directory of that name.
type OS string

var _ FS = OS("")

// Open opens a file that exists, for reading and writing.
func (d OS) Open(name string) (File, error) {
	return wrap(os.OpenFile(d.path(name), os.O_RDWR, 0))
}

// Create makes an empty file, which nobody but the owner may read.
func (d OS) Create(name string) (File, error) {
	return wrap(os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600))
}

// Rename takes the place of a file that is there.
func (d OS) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Remove removes a file.
func (d OS) Remove(name string) error { return os.Remove(d.path(name)) }

// List returns the names of all files, in order.
func (d OS) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Sync makes creations, renamings and removals last.
func (d OS) Sync() error { return SyncDir(string(d)) }

func (d OS) path(name string) string { return filepath.Join(string(d), name) }

type osFile struct{ *os.File }

// Shared is a directory of the operating system whose files others read, too. Its files are made
// readable for everyone. Files that may only be read can be opened, and what is not a regular file,
// such as a symbolic link, is not listed.
type Shared struct{ OS }

// Open opens a file that exists, for reading and, if that is permitted, for writing.
func (d Shared) Open(name string) (File, error) {
	f, err := d.OS.Open(name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return wrap(os.Open(d.path(name)))
	}
	return f, err
}

// Create makes an empty file, which everyone may read.
func (d Shared) Create(name string) (File, error) {
	return wrap(os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644))
}

// List returns the names of all regular files, in order.
func (d Shared) List() ([]string, error) {
	entries, err := os.ReadDir(string(d.OS))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// wrap keeps a nil *os.File from becoming a File that is not nil.
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

// takeRoom makes a file as long as it should be, unless it was made before, and returns its size.
// It writes, as a file that is only said to be long may meet a full disk whenever it is used. If
// there is no room, it gives back what it took: else that would pass for a whole file later.
func takeRoom(f *os.File, size int) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("vfs: size: %w", err)
	}
	if info.Size() >= leastMap {
		return int(info.Size()), nil
	}
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		return 0, errors.Join(err, f.Truncate(0))
	}
	return size, nil
}
