package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLabsReadTheData runs the commands in the labs' READMEs without arguments and on generated
// data.
func TestLabsReadTheData(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(dir, 50))
	require.Error(t, run("", 50))
	logs, err := filepath.Glob(filepath.Join(dir, "changes", "*.tsv.zst"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	graphs, err := filepath.Glob(filepath.Join(dir, "graphs", "*", "*edges*"))
	require.NoError(t, err)
	require.Len(t, graphs, 4)
	for _, args := range [][]string{
		{"./examples/revisitlab"}, {"./examples/pageranklab"},
		{"./examples/revisitlab", "-curves=false", "-most", "20", logs[0]},
		append([]string{"./examples/pageranklab", "-rounds", "0", "-crawls", "1"}, graphs...),
	} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"run"}, args...)...)
		cmd.Dir = filepath.Join("..", "..", "..")
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotEmpty(t, out)
	}
}
