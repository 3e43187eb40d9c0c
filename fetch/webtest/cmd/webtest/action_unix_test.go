//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
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
	for urls, want := range map[string]int{"{seed}robots.txt": 0, "{seed}robots.txt {seed}": 1, "": 2} {
		dir := t.TempDir()
		cmd := exec.Command("bash", "../../../../.github/actions/webtest/run")
		cmd.Env = append(os.Environ(), crawling+"=1", "RUNNER_TEMP="+dir, "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"),
			"DELAY=1h", "FLAGS=-hosts 1", "COMMAND="+self+" "+urls)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%q: %s", urls, out)
		summary, err := os.ReadFile(filepath.Join(dir, "summary"))
		require.NoError(t, err)
		if want < 2 {
			require.Contains(t, string(summary), "host delay  ")
		}
	}
}
