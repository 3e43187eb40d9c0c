package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// A reading is the resource usage of this process so far.
type reading struct {
	cpu           time.Duration
	read, written int64
	peak          int64 // since the last reading
}

// usage returns the kernel's counters, and resets the peak of memory.
func usage() (r reading, err error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return r, err
	}
	r.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	if r.read, err = procNumber("/proc/self/io", "rchar: %d"); err != nil {
		return r, err
	}
	if r.written, err = procNumber("/proc/self/io", "wchar: %d"); err != nil {
		return r, err
	}
	if r.peak, err = procNumber("/proc/self/status", "VmHWM: %d"); err != nil {
		return r, err
	}
	r.peak *= 1024
	debug.FreeOSMemory()
	return r, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// procNumber returns the number in the line of a file that matches a format.
func procNumber(name, format string) (n int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.Join(strings.Fields(lines.Text()), " ")
		if _, err := fmt.Sscanf(line, format, &n); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %q: %w", name, format, lines.Err())
}
