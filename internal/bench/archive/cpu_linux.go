package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuUsed returns the CPU time of this process, on all cores.
func cpuUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuTime returns the CPU time of a process, with a resolution of 10 ms.
func cpuTime(cmd *exec.Cmd) (time.Duration, error) {
	if cmd.Process == nil {
		return 0, nil
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(data), ") ") // after the program's name
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 || fields[0] == "Z" {
		return 0, errors.New("no statistics")
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}
