package main

import (
	"errors"
	"os"
	"syscall"
)

// forget drops a file from the page cache.
func forget(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	err = f.Sync()
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		err = errors.Join(err, errno)
	}
	return errors.Join(err, f.Close())
}
