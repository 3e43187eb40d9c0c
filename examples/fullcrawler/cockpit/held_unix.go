//go:build unix && !solaris && !aix && !illumos

package cockpit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// seesLocks says whether held can tell.
const seesLocks = true

// held reports whether another process has locked a directory that this one may only read.
func held(path string) bool {
	f, err := os.Open(filepath.Join(path, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}
