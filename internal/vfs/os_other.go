//go:build !linux

package vfs

import (
	"os"
	"runtime"
)

// Start does nothing: the hint has no portable form.
func (f osFile) Start(int64, int64) {}

// Random does nothing: the hint has no portable form.
func (f osFile) Random() {}

// syncDirectory knows that Windows has no such thing, and keeps names safe by itself.
func syncDirectory(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return f.Sync()
}
