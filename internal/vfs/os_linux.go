package vfs

import (
	"os"
	"syscall"
)

// Sync does not sync the file's timestamps, which are not used.
func (f osFile) Sync() error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
