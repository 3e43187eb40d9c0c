//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// inGroup lets a command run in a process group of its own, which is interrupted with its context: the
// crawler may be a child of a shell. killRest kills what the command has left running.
func inGroup(cmd *exec.Cmd) (killRest func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // usually nothing is left
		}
	}
}
