package archive_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/erasure.md must show the program as it is tested here.
func TestTheGuideShowsTheProgram(t *testing.T) {
	source, err := os.ReadFile("example_erase_test.go")
	require.NoError(t, err)
	_, program, found := strings.Cut(string(source), "\n// erase removes")
	require.True(t, found)
	program, _, found = strings.Cut(program, "\n\n// Example_erase")
	require.True(t, found)
	page, err := os.ReadFile("../docs/erasure.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```go\n// erase removes"+program+"\n```")
}
