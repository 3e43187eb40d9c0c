package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32)

// Lock makes the file if there is none, and leaves it there. It opens it so that nobody else can.
func (d OS) Lock(name string) (io.Closer, error) {
	path, err := syscall.UTF16PtrFromString(d.path(name))
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), name), nil
}
