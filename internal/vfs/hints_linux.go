//go:build amd64 || arm64 || loong64 || mips64 || mips64le || riscv64 || s390x

package vfs

import (
	"os"
	"syscall"
)

// Arguments of the system calls, from the kernel's headers. Other architectures pass offsets
// differently, or lack the numbers of the calls in package syscall.
const (
	syncRangeWrite = 2 // start writing dirty pages without waiting
	adviceRandom   = 1
	adviceWillNeed = 3
)

// Start starts writing a range to disk while the caller prepares more.
func (f osFile) Start(at, n int64) {
	_, _, _ = syscall.Syscall6(syscall.SYS_SYNC_FILE_RANGE,
		f.Fd(), uintptr(at), uintptr(n), syncRangeWrite, 0, 0) // a hint: it may fail
}

// Ahead starts reading a range from disk while the caller processes earlier data.
func Ahead(f *os.File, at, n int64) {
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64,
		f.Fd(), uintptr(at), uintptr(n), adviceWillNeed, 0, 0) // a hint: it may fail
}

// Ahead calls the package-level Ahead.
func (f osFile) Ahead(at, n int64) { Ahead(f.File, at, n) }

// Random disables the kernel's read-ahead.
func (f osFile) Random() {
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64,
		f.Fd(), 0, 0, adviceRandom, 0, 0) // a hint: it may fail
}
