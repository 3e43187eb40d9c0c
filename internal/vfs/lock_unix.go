//go:build unix && !solaris && !aix && !illumos

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Lock creates the file if it does not exist, and leaves it there. It may be one that can only be read.
func (d OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = os.Open(d.path(name))
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return flock{f}, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(err, f.Close())
}

// A flock is a locked file. A forked child shares it until it calls exec, so closing the file
// without unlocking it could leave the lock held by that child.
type flock struct{ *os.File }

// Close releases the lock.
func (f flock) Close() error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.File.Close())
}
