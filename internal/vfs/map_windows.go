package vfs

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
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
	mapping, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil,
		syscall.PAGE_READWRITE, 0, uint32(size), nil)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("CreateFileMapping", err), f.Close())
	}
	at, err := syscall.MapViewOfFile(mapping, syscall.FILE_MAP_WRITE, 0, 0, uintptr(size))
	if err != nil {
		err = os.NewSyscallError("MapViewOfFile", err)
		return nil, errors.Join(err, syscall.CloseHandle(mapping), f.Close())
	}
	b := unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size)
	return &Map{b, func() error {
		return errors.Join(syscall.UnmapViewOfFile(at), syscall.CloseHandle(mapping), f.Close())
	}}, nil
}
