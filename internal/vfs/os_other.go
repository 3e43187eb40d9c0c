//go:build !linux

package vfs

import (
	"os"
	"runtime"
)

// syncDirectory knows that Windows has no such thing, and keeps names safe by itself.
func syncDirectory(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return f.Sync()
}
