package main

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// watchMemory monitors a process until it ends. The returned function then returns its peak memory in
// bytes. The figure of wait4 would be wrong: it is never less than the parent's memory when the
// process started.
func watchMemory(pid int) (peak func() int64) {
	most := make(chan int64)
	go func() {
		var seen int64
		for {
			kilobytes, err := measure.ProcNumber(fmt.Sprintf("/proc/%d/status", pid), "VmHWM")
			if err != nil { // it has ended, and has no memory any more
				most <- seen
				return
			}
			seen = kilobytes << 10
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() int64 { return <-most }
}
