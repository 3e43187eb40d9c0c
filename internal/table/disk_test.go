package table

import (
	"strings"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A disk counts open files, and refuses to replace one that is not a temporary one.
type disk struct {
	*vfs.Mem
	open atomic.Int64
	idle bool // no fault is planned
}

func watch(m *vfs.Mem) *disk { return &disk{Mem: m, idle: true} }

func (d *disk) FailAt(n int, errs ...error) {
	d.idle = n == 0
	d.Mem.FailAt(n, errs...)
}

func (d *disk) Create(name string) (vfs.File, error) {
	if d.Data(name) != nil && !strings.HasSuffix(name, durable.NewName) {
		panic("created again: " + name)
	}
	return d.watch(d.Mem.Create(name))
}

func (d *disk) Open(name string) (vfs.File, error) { return d.watch(d.Mem.Open(name)) }

func (d *disk) watch(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	return &file{File: f, disk: d}, nil
}

type file struct {
	vfs.File
	disk   *disk
	closed atomic.Bool
}

func (f *file) Close() error {
	if f.closed.Swap(true) {
		panic("closed twice")
	}
	f.disk.open.Add(-1)
	return f.File.Close()
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	if f.closed.Load() {
		panic("read after close")
	}
	return f.File.ReadAt(b, at)
}
