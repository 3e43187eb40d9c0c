package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// openReadOnly opens an archive that writes only to a temporary directory.
func openReadOnly(dir string, opts Options) (*Archive, error) {
	if opts.Reindex {
		return nil, fmt.Errorf("archive: reindex: %w", ErrReadOnly)
	}
	path, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.ReadDir(path)
	}
	if err != nil {
		return nil, openError(err)
	}
	return openOrRebuild(path, &overlay{base: vfs.Shared{OS: vfs.OS(path)}, spill: opts.SpillDir},
		opts)
}

// overlay is a read-only directory with a writable temporary one over it, which is created when it
// is first needed and removed when the lock is released. Its methods are safe for concurrent use.
type overlay struct {
	base  vfs.Shared
	spill string

	mu     sync.Mutex // guards what follows
	dir    string     // "" until the first write
	hidden map[string]bool
	own    map[string]bool // names of files in dir
}

var errOverlay = &fs.PathError{Op: "write", Path: "read-only archive", Err: fs.ErrPermission}

// upperLocked creates the temporary directory if needed. It requires that o.mu is held.
func (o *overlay) upperLocked() (vfs.OS, error) {
	if o.dir == "" {
		dir, err := os.MkdirTemp(o.spill, "archive-")
		if err != nil {
			return "", err
		}
		o.dir, o.own, o.hidden = dir, map[string]bool{}, map[string]bool{}
	}
	return vfs.OS(o.dir), nil
}

// Open implements vfs.FS.
func (o *overlay) Open(name string) (vfs.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.own[name]:
		return vfs.OS(o.dir).Open(name)
	case o.hidden[name]:
		return nil, fs.ErrNotExist
	}
	f, err := o.base.Open(name)
	if err != nil {
		return nil, err
	}
	return untouched{f}, nil
}

// Create implements vfs.FS.
func (o *overlay) Create(name string) (vfs.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	upper, err := o.upperLocked()
	if err != nil {
		return nil, err
	}
	o.own[name] = true
	return upper.Create(name)
}

// Rename implements vfs.FS, for files in the temporary directory.
func (o *overlay) Rename(from, to string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.own[from] {
		return errOverlay
	}
	if err := vfs.OS(o.dir).Rename(from, to); err != nil {
		return err
	}
	delete(o.own, from)
	o.own[to] = true
	return nil
}

// Remove implements vfs.FS.
func (o *overlay) Remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	upper, err := o.upperLocked()
	if err != nil {
		return err
	}
	o.hidden[name] = true
	if !o.own[name] {
		return nil
	}
	delete(o.own, name)
	return upper.Remove(name)
}

// List implements vfs.FS.
func (o *overlay) List() ([]string, error) {
	names, err := o.base.List()
	o.mu.Lock()
	defer o.mu.Unlock()
	names = slices.DeleteFunc(names, func(name string) bool { return o.hidden[name] })
	for name := range o.own {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// Map implements vfs.FS. An archive does not use it.
func (o *overlay) Map(string, int) (*vfs.Map, error) { return nil, errors.ErrUnsupported }

// Sync implements vfs.FS. It does nothing, since the directory is temporary.
func (o *overlay) Sync() error { return nil }

// Lock excludes writers, if this process can open the lock file.
func (o *overlay) Lock(name string) (io.Closer, error) {
	l, err := o.base.LockShared(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		l = nil
	case err != nil:
		return nil, err
	}
	return &overlayLock{o, l}, nil
}

type overlayLock struct {
	o    *overlay
	base io.Closer // nil if there is none
}

// Close removes the temporary directory.
func (l *overlayLock) Close() (err error) {
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	if l.o.dir != "" {
		err = os.RemoveAll(l.o.dir)
	}
	if l.base != nil {
		err = errors.Join(err, l.base.Close())
	}
	return err
}

// untouched is a file that fails on writes.
type untouched struct{ vfs.File }

// WriteAt fails.
func (untouched) WriteAt([]byte, int64) (int, error) { return 0, errOverlay }

// Truncate fails.
func (untouched) Truncate(int64) error { return errOverlay }

// Ahead passes on the hint.
func (u untouched) Ahead(at, n int64) {
	if f, ok := u.File.(interface{ Ahead(at, n int64) }); ok {
		f.Ahead(at, n)
	}
}
