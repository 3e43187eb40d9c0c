//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package archive

import (
	"os"
	"syscall"
)

// unlock takes back the lock that bbolt has on its file. Closing the file does not, as long as it
// is mapped into memory.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
