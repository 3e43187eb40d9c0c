// Package pages prevents the measured stores from using unbounded memory in the page cache.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Drop evicts the synced pages of the files in a directory from the page cache, whose size has no
// limit. So a store benefits only from its own memory, which has one.
func Drop(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // it may have been removed
		}
		f, err := os.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}
