package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// watchMemory looks at a process that has started, until the returned function is called, which
// returns the most memory that it had, in bytes. What wait4 tells would not do: it is never less than
// what the parent had when the process began.
func watchMemory(pid int) (peak func() int64) {
	end, seen := make(chan struct{}), make(chan int64)
	most := peakOf(pid)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most = max(most, peakOf(pid))
			case <-end:
				seen <- most
				return
			}
		}
	}()
	return func() int64 {
		close(end)
		return <-seen
	}
}

// peakOf returns the most memory that a process had by now, and 0 of one that has ended.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == "VmHWM:" {
			kilobytes, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel wrote it
			return kilobytes << 10
		}
	}
	return 0
}
