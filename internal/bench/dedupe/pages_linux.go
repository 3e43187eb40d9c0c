package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// dropPages takes what is on disk of the files in a directory out of the page cache, which the
// kernel has as much memory for as it likes. So what a store wants to have in memory has to be in
// its own, which is bounded.
func dropPages(dir string) error {
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

// dropMapped makes dropPages possible for a file that is mapped at an address.
func dropMapped(address uintptr) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err == nil && start == address {
			_, _, errno := unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
	return fmt.Errorf("nothing is mapped at %x", address)
}
