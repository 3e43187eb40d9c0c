package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropMapped unmaps the pages of the file mapped at an address, so that measure.DropPages can drop them.
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
