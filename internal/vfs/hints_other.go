//go:build !linux || !(amd64 || arm64 || loong64 || mips64 || mips64le || riscv64 || s390x)

package vfs

// Start does nothing: the hint has no portable form.
func (f osFile) Start(int64, int64) {}

// Random does nothing: the hint has no portable form.
func (f osFile) Random() {}
