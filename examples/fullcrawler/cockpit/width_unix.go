//go:build unix && !solaris && !aix && !illumos

package cockpit

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalWidth returns the number of columns of a terminal, or 0.
func terminalWidth(file *os.File) int {
	var size struct{ rows, columns, x, y uint16 }
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if failed != 0 {
		return 0
	}
	return int(size.columns)
}
