package satstore_test

import (
	"encoding/json"
	"errors"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// snippetHead is the assumed context of a snippet.
const snippetHead = `package snippets

import (
	"context"
	"time"

	"github.com/spinneret-go/spinneret/satstore"
)

var (
	ctx    context.Context
	_      time.Time
	store  *satstore.Store
	record *satstore.Record
)
`

// TestSnippetsCompile compiles every block of code in a doc comment of this package.
func TestSnippetsCompile(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	code := []string{snippetHead}
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			code = append(code, snippets(t, name)...)
		}
	}
	require.Greater(t, len(code), 1, "no snippets found")
	require.NoError(t, compile(t, strings.Join(code, "\n")))
	require.ErrorContains(t, compile(t, snippetHead+"func _() { store.Fetch() }\n"), "store.Fetch")
}

// snippets returns a function for each block of code in the doc comments of a file.
func snippets(t *testing.T, name string) (code []string) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	require.NoError(t, err)
	for _, doc := range file.Comments {
		for _, block := range new(comment.Parser).Parse(doc.Text()).Content {
			if c, ok := block.(*comment.Code); ok {
				code = append(code, "func _() error {\n"+c.Text+"return nil\n}\n")
			}
		}
	}
	return code
}

// compile builds a package in a directory of this module that does not exist, by an overlay.
func compile(t *testing.T, code string) error {
	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "snippets.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(source, []byte(code), 0o600))
	here, err := os.Getwd()
	require.NoError(t, err)
	list, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(here, "snippets", "snippets.go"): source},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./snippets").
		CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}
