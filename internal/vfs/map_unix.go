//go:build unix && !solaris && !aix && !illumos

package vfs

import (
	"errors"
	"os"
	"syscall"
)

// Map opens or creates a memory-mapped file.
func (d OS) Map(name string, size int) (*Map, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if size, err = allocate(f, size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	// The mapping outlives the descriptor.
	if err = errors.Join(os.NewSyscallError("mmap", err), f.Close()); err != nil {
		return nil, err
	}
	return &Map{b, func() error { return os.NewSyscallError("munmap", syscall.Munmap(b)) }}, nil
}
