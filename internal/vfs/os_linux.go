package vfs

import (
	"os"
	"syscall"
)

// Sync does not sync the timestamps of the file, which are not used.
func (f osFile) Sync() error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
