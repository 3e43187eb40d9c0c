//go:build !linux || !(amd64 || arm64 || loong64 || mips64 || mips64le || riscv64 || s390x)

package vfs

import "os"

// Start does nothing: the hint has no portable form.
func (f osFile) Start(int64, int64) {}

// Ahead does nothing: the hint has no portable form.
func Ahead(*os.File, int64, int64) {}

// Ahead does nothing: the hint has no portable form.
func (f osFile) Ahead(int64, int64) {}

// Random does nothing: the hint has no portable form.
func (f osFile) Random() {}
