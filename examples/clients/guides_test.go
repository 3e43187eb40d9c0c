package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestGuidesShowTestedCode checks that each line of Go code in the guides is in this package.
func TestGuidesShowTestedCode(t *testing.T) {
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "from-*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, guides)
	for _, guide := range append(guides, filepath.Join("..", "..", "docs", "existing-crawler.md")) {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		blocks := goBlock.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, blocks, guide)
		for _, block := range blocks {
			require.Contains(t, code.String(), block[1], guide)
		}
	}
}
