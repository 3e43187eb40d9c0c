package main

import (
	"os/exec"
	"testing"
)

// TestMemoryIsTheChildsOwn makes this process use far more memory than cat ever does.
func TestMemoryIsTheChildsOwn(t *testing.T) {
	ballast := make([]byte, 200<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchMemory(cmd.Process.Pid)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := peak(); got == 0 || got > 100<<20 {
		t.Errorf("cat used %d bytes; the ballast of this process is %d", got, len(ballast))
	}
}
