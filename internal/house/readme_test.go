package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readRoot reads a file of the module's root.
func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// unproved returns the Go code of a document that is not the body of a runnable example.
func unproved(s source, document string) (found []string) {
	var examples []string
	for _, d := range s {
		for _, f := range d.files {
			if strings.HasSuffix(f.name, "example_test.go") {
				examples = append(examples, strings.ReplaceAll(f.text, "\n\t", "\n"))
			}
		}
	}
	for _, block := range goBlock.FindAllStringSubmatch(document, -1) {
		if !containsText(examples, block[1]) {
			found = append(found, "no example holds this code:\n"+block[1])
		}
	}
	return found
}

func containsText(texts []string, part string) bool {
	for _, text := range texts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func TestReadmeShowsExamplesOnly(t *testing.T) {
	readme := readRoot(t, "README.md")
	require.Regexp(t, goBlock, readme)
	report(t, unproved(load(t), readme))
	require.Len(t, unproved(load(t), "```go\nno such code\n```"), 1)
}

func TestReadmeGivesTheCommandThatCIRuns(t *testing.T) {
	const command = "\ngo test -race ./...\n"
	require.Contains(t, readRoot(t, ".ci/run"), command)
	require.Contains(t, strings.ReplaceAll(readRoot(t, "README.md"), "\n    ", "\n"), command)
}

// TestReadmeKnowsTheRooms compares the map with the house: a room that is there is not "planned".
func TestReadmeKnowsTheRooms(t *testing.T) {
	readme := readRoot(t, "README.md")
	for _, d := range load(t).rooms() {
		room := roomOf(d.path)
		require.Regexp(t, "\\| `"+room+"` \\|.*\\|", readme)
		require.NotRegexp(t, "\\| `"+room+"` \\|.*planned", readme)
	}
}
