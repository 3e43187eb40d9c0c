//go:build linux || darwin

package main

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes an ordinary user may still write to a directory's disk.
func freeSpace(dir string) (bytes int64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
