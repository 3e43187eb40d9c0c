//go:build unix && !solaris && !aix && !illumos

package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Lock makes the file if there is none, and leaves it there.
func (d OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE, 0o600)
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

// LockShared is Lock for those who only read, of whom there may be many. It makes no file, and
// without one there is nothing to lock.
func (d OS) LockShared(name string) (io.Closer, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return flock{f}, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(err, f.Close())
}

// A flock is a file that is locked. A child that was forked and has not yet become its program has
// the file open, too: to close it alone would leave the lock to that child.
type flock struct{ *os.File }

// Close gives the lock back.
func (f flock) Close() error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.File.Close())
}
