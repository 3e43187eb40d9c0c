package main

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// watchMemory monitors a running process. The returned function stops that, and returns the peak
// memory in bytes. The figure of wait4 would be wrong: it is never less than the parent's memory
// when the process started.
func watchMemory(pid int) (peak func() int64) {
	end, seen := make(chan struct{}), make(chan int64)
	status := fmt.Sprintf("/proc/%d/status", pid)
	most := int64(0)
	read := func() {
		if kilobytes, err := measure.ProcNumber(status, "VmHWM"); err == nil { // it has not ended
			most = max(most, kilobytes<<10)
		}
	}
	read() // the process may end at once
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				read()
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
