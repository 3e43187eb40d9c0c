//go:build linux || darwin

package cockpit

import "syscall"

// FreeSpace returns how many bytes an ordinary user may still write to a directory's disk.
func FreeSpace(dir string) (bytes int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
