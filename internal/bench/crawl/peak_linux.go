package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// watchMemory monitors a running process. The returned function stops that, and returns the peak
// memory in bytes. The figure of wait4 would be wrong: it is never less than the parent's memory
// when the process started.
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

// peakOf returns the peak memory of a process so far, or 0 if it has ended.
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
