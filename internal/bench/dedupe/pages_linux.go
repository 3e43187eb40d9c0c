package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropMapped makes pages.Drop possible for a file that is mapped at an address.
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
