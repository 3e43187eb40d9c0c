// Package pages keeps the kernel from lending the measured stores memory that nobody bounds.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Drop takes what is on disk of the files in a directory out of the page cache, which the kernel
// has as much memory for as it likes. So what a store wants to have in memory has to be in its own,
// which is bounded.
func Drop(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // it may have been removed meanwhile
		}
		f, err := os.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}
