//go:build amd64 || arm64 || loong64 || mips64 || mips64le || riscv64 || s390x

package vfs

import (
	"os"
	"syscall"
)

// What the system calls are told, from the kernel's headers. Other processors pass offsets in other
// ways, or have no number in package syscall.
const (
	syncRangeWrite = 2 // begin to write dirty pages, and do not wait
	adviceRandom   = 1
	adviceWillNeed = 3
)

// Start begins to write a range, so that the disk works while the caller prepares more.
func (f osFile) Start(at, n int64) {
	_, _, _ = syscall.Syscall6(syscall.SYS_SYNC_FILE_RANGE,
		f.Fd(), uintptr(at), uintptr(n), syncRangeWrite, 0, 0) // a hint: it may fail
}

// Ahead begins to read a range, so that the disk works while the caller is busy with what came
// before.
func Ahead(f *os.File, at, n int64) {
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64,
		f.Fd(), uintptr(at), uintptr(n), adviceWillNeed, 0, 0) // a hint: it may fail
}

// Ahead is a hint.
func (f osFile) Ahead(at, n int64) { Ahead(f.File, at, n) }

// Random keeps the kernel from reading ahead.
func (f osFile) Random() {
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64,
		f.Fd(), 0, 0, adviceRandom, 0, 0) // a hint: it may fail
}
