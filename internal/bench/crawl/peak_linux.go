package main

import (
	"os"
	"syscall"
)

// peak returns the most memory that a process had, in bytes.
func peak(s *os.ProcessState) int64 {
	used, _ := s.SysUsage().(*syscall.Rusage)
	if used == nil {
		return 0
	}
	return used.Maxrss << 10
}
