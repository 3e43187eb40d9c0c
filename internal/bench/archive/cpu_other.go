//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

// cpuUsed returns the time, which is as good where there is nothing else to go by.
func cpuUsed() time.Duration { return time.Duration(time.Now().UnixNano()) }

func cpuTime(*exec.Cmd) (time.Duration, error) {
	return 0, errors.New("only Linux tells what a process has computed")
}
