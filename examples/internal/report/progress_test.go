package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgressIsForTerminals(t *testing.T) {
	var out bytes.Buffer
	Progress(&out, "x")(0.5)
	require.Empty(t, out.String())

	name := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(name)
	require.NoError(t, err)
	Progress(f, "x")(0.5)
	require.NoError(t, f.Close())
	written, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Empty(t, written)
}

// TestBar: a share outside 0 to 1, as rounding may produce, must not panic.
func TestBar(t *testing.T) {
	for _, tt := range []struct {
		name  string
		share float64
		want  string
	}{
		{"nothing is done", 0, "\rjob [" + strings.Repeat(" ", 40) + "]   0 %"},
		{"half is done", 0.5, "\rjob [" + strings.Repeat("=", 20) + strings.Repeat(" ", 20) + "]  50 %"},
		{"the end ends the line", 1, "\rjob [" + strings.Repeat("=", 40) + "] 100 %\n"},
		{"more than 1 counts as 1", 1.5, "\rjob [" + strings.Repeat("=", 40) + "] 100 %\n"},
		{"less than 0 counts as 0", -1, "\rjob [" + strings.Repeat(" ", 40) + "]   0 %"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			var out bytes.Buffer
			bar(&out, "job")(tt.share)
			require.Equal(t, tt.want, out.String())
		})
	}
}
