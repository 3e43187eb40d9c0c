package satstore

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

var errFault = errors.New("a fault")

// A faultyFS fails one call, selected by its number: a read, a write, a sync or an open. It counts
// the open files.
type faultyFS struct {
	*vfs.Mem
	calls  atomic.Int64
	failAt atomic.Int64
	open   atomic.Int64

	beforeRead func(name string, at int64)   // if it is not nil
	before     func(what, name string) error // likewise
}

type faultyFile struct {
	vfs.File
	fs   *faultyFS
	name string
}

func (f *faultyFS) call(what, name string) error {
	if f.before != nil {
		if err := f.before(what, name); err != nil {
			return err
		}
	}
	if f.calls.Add(1) == f.failAt.Load() {
		return errFault
	}
	return nil
}

// hit reports whether the call that should fail was made.
func (f *faultyFS) hit() bool { return f.calls.Load() >= f.failAt.Load() }

func (f *faultyFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	f.open.Add(1)
	return &faultyFile{file, f, name}, nil
}

func (f *faultyFS) Open(name string) (vfs.File, error) {
	if err := f.call("open", name); err != nil {
		return nil, err
	}
	file, err := f.Mem.Open(name)
	return f.wrap(name, file, err)
}

func (f *faultyFS) Create(name string) (vfs.File, error) {
	if err := f.call("create", name); err != nil {
		return nil, err
	}
	file, err := f.Mem.Create(name)
	return f.wrap(name, file, err)
}

func (f *faultyFS) Rename(from, to string) error {
	return errors.Join(f.call("rename", from), f.Mem.Rename(from, to)) // it may take effect nevertheless
}

func (f *faultyFS) Remove(name string) error {
	if err := f.call("remove", name); err != nil {
		return err
	}
	return f.Mem.Remove(name)
}

func (f *faultyFS) List() ([]string, error) {
	if err := f.call("list", ""); err != nil {
		return nil, err
	}
	return f.Mem.List()
}

func (f *faultyFS) Map(name string, size int) (*vfs.Map, error) {
	if err := f.call("map", name); err != nil {
		return nil, err
	}
	return f.Mem.Map(name, size)
}

func (f *faultyFS) Sync() error {
	if err := f.call("sync", ""); err != nil {
		return err
	}
	return f.Mem.Sync()
}

func (f *faultyFS) Lock(name string) (io.Closer, error) {
	if err := f.call("lock", name); err != nil {
		return nil, err
	}
	return f.Mem.Lock(name)
}

func (f *faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.fs.call("read", f.name); err != nil {
		return 0, err
	}
	if f.fs.beforeRead != nil {
		f.fs.beforeRead(f.name, at)
	}
	return f.File.ReadAt(b, at)
}

// A failing WriteAt writes a part of the data, as a disk may.
func (f *faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.fs.call("write", f.name); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, err
	}
	return f.File.WriteAt(b, at)
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.call("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.call("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Size() (int64, error) {
	if err := f.fs.call("size", f.name); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *faultyFile) Close() error {
	f.fs.open.Add(-1)
	return errors.Join(f.fs.call("close", f.name), f.File.Close())
}
