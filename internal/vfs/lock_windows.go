package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32)

// Lock creates the file if it does not exist, and leaves it there. It opens the file for exclusive
// use.
func (d OS) Lock(name string) (io.Closer, error) {
	path, err := syscall.UTF16PtrFromString(d.path(name))
	if err != nil {
		return nil, err
	}
	return lockFile(path, name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, syscall.OPEN_ALWAYS)
}

func lockFile(path *uint16, name string, access, share, mode uint32) (io.Closer, error) {
	handle, err := syscall.CreateFile(path, access, share, nil, mode, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), name), nil
}
