//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestActionJudges runs the script of the GitHub action with a crawler that is polite, and with one
// that is not.
func TestActionJudges(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for command, want := range map[string]int{"1ns {seed}robots.txt {seed}": 0, "1h {seed}robots.txt {seed}": 1, "1h": 2} {
		delay, urls, _ := strings.Cut(command, " ")
		dir := t.TempDir()
		cmd := exec.Command("bash", "../../../../.github/actions/webtest/run")
		cmd.Env = append(os.Environ(), crawling+"=1", "RUNNER_TEMP="+dir, "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"),
			"DELAY="+delay, "FLAGS=-hosts 1", "COMMAND="+self+" "+urls)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%q: %s", command, out)
		summary, err := os.ReadFile(filepath.Join(dir, "summary"))
		require.NoError(t, err)
		if want < 2 {
			require.Contains(t, string(summary), "host delay  ")
		}
	}
}

// TestNothingIsLeftRunning interrupts a crawler that has a child, which ignores that.
func TestNothingIsLeftRunning(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		child, err := os.Open(fifo) // waits for it
		interrupt()
		if err == nil {
			_, err = io.ReadAll(child) // waits for its end
		}
		ended <- err
	}()
	err := run(ctx, []string{"-check", "1s", "--", "sh", "-c", "sleep 600 >" + fifo + " 2>&1 & wait"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "no request arrived")
	require.NoError(t, <-ended)
}

// A crawler may use services on its own machine, and all_proxy leads nowhere else.
func TestProxyIsForTheWebAlone(t *testing.T) {
	t.Setenv("ALL_PROXY", "http://192.0.2.1:9")
	t.Setenv("no_proxy", ".test")
	var out strings.Builder
	err := run(t.Context(), []string{"-check", "1s", "--", "sh", "-c", `echo "<$no_proxy $NO_PROXY $all_proxy$ALL_PROXY>"`}, io.Discard, &out)
	require.ErrorContains(t, err, "no request arrived")
	require.Contains(t, out.String(), "<localhost,127.0.0.1,::1 localhost,127.0.0.1,::1 >")
}
