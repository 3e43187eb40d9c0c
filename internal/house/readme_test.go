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

// untestedCode returns the Go code of a document that is not part of a runnable example.
func untestedCode(s source, document string) (found []string) {
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
			found = append(found, "no example contains this code:\n"+block[1])
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
	report(t, untestedCode(load(t), readme))
	require.Len(t, untestedCode(load(t), "```go\nno such code\n```"), 1)
}

// The README's command is for those without a C compiler and little time.
func TestReadmeGivesTheCommandThatCIRuns(t *testing.T) {
	require.Contains(t, readRoot(t, "README.md"), "\n    go test -short ./...\n")
	require.Contains(t, readRoot(t, ".ci/run"), "\nshort=-short\n")
	require.Contains(t, readRoot(t, ".ci/run"), "go test $short \"${plain[@]}\"\n")
	require.Contains(t, readRoot(t, ".ci/run"), "go test -race $short \"${raced[@]}\"\n")
}

var goLine = regexp.MustCompile(`(?m)^(?:go|toolchain) (.*)$`)

// TestModulesStateOneVersion keeps builds with GOTOOLCHAIN=local possible. The library states the oldest
// Go version that works, which the documents name; what only we build states one that its dependencies
// ask for. None requires another toolchain.
func TestModulesStateOneVersion(t *testing.T) {
	stated := func(file string) string {
		lines := goLine.FindAllStringSubmatch(readRoot(t, file), -1)
		require.Len(t, lines, 1, file)
		return lines[0][1]
	}
	minor := "Go " + strings.TrimSuffix(stated("go.mod"), ".0")
	require.Contains(t, readRoot(t, "README.md"), minor)
	require.Contains(t, readRoot(t, "CHANGELOG.md"), minor)
	require.Equal(t, stated("internal/bench/go.mod"), stated("examples/clients/go.mod"))
	require.Equal(t, stated("internal/bench/go.mod"), stated("examples/cluster/go.mod"))
}

var packageRow = regexp.MustCompile("(?m)^\\| \\[`([a-z]+)`\\]")

// TestReadmeListsThePackages checks that the README's map lists exactly the public packages.
func TestReadmeListsThePackages(t *testing.T) {
	var shown, built []string
	for _, row := range packageRow.FindAllStringSubmatch(readRoot(t, "README.md"), -1) {
		shown = append(shown, row[1])
	}
	for _, d := range load(t).public() {
		if d.path == packageOf(d.path) {
			built = append(built, d.path)
		}
	}
	require.ElementsMatch(t, built, shown)
}

// TestChangelogNamesThePackages checks that the changelog names all packages and sub-packages.
func TestChangelogNamesThePackages(t *testing.T) {
	changes := readRoot(t, "CHANGELOG.md")
	for _, d := range load(t).public() {
		if len(d.code()) > 0 && d.code()[0].ast.Name.Name != "main" && !strings.Contains(d.path, "internal") {
			require.Contains(t, changes, "`"+d.path+"`")
		}
	}
}

// qualifiedName matches a name of a package in a document.
var qualifiedName = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*(?:\\.[A-Z]\\w*)?)`")

// unknownNames returns the qualified names in a document that do not exist. A name is ignored if
// the part before its dot is not a package, since it may be a variable.
func unknownNames(s source, document string) (found []string) {
	packages := map[string]map[string]bool{}
	for _, d := range s.public() {
		packages[d.path] = namesOf(d)
	}
	for _, m := range qualifiedName.FindAllStringSubmatch(document, -1) {
		if names := packages[m[1]]; names != nil && !names[m[2]] {
			found = append(found, m[1]+" has no "+m[2])
		}
	}
	return found
}

func TestNamesInDocumentsExist(t *testing.T) {
	s := load(t)
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, guides)
	documents := []string{"README.md", "CHANGELOG.md", ".github/CONTRIBUTING.md"}
	for _, guide := range guides {
		documents = append(documents, "docs/"+filepath.Base(guide))
	}
	for _, document := range documents {
		for _, unknown := range unknownNames(s, readRoot(t, document)) {
			t.Errorf("%s: %s", document, unknown)
		}
	}
	text := "`robots.NewCache`, `robots.Cache.Allowed` and `resp.Raw`, but not `robots.Caches` or `robots.Cache.Deny`"
	require.Len(t, unknownNames(s, text), 2)
}
