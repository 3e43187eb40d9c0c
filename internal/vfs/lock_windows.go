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
	return lockFile(path, name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, syscall.OPEN_ALWAYS)
}

// LockShared is Lock for those who only read, of whom there may be many. It makes no file, and
// without one there is nothing to lock.
func (d OS) LockShared(name string) (io.Closer, error) {
	path, err := syscall.UTF16PtrFromString(d.path(name))
	if err != nil {
		return nil, err
	}
	return lockFile(path, name, syscall.GENERIC_READ, syscall.FILE_SHARE_READ, syscall.OPEN_EXISTING)
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
