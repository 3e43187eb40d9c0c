package house

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A checker type-checks the code in doc comments against the current packages.
type checker struct {
	fset     *token.FileSet
	importer types.Importer
	byName   map[string]string // paths of public and standard packages by their last part
}

// newChecker reads the export data of the packages from the build cache.
func newChecker(t *testing.T) *checker {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	list.Dir, list.Stderr = filepath.Join("..", ".."), os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	c := &checker{token.NewFileSet(), nil, map[string]string{}}
	exports := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		name, file, _ := strings.Cut(lines.Text(), " ")
		exports[name] = file
		own, ours := strings.CutPrefix(name, module+"/")
		hidden := strings.Contains(name, "internal") || strings.Contains(name, "vendor/")
		standard := !strings.Contains(strings.Split(name, "/")[0], ".")
		if !hidden && (ours && packageOf(own) != "" || standard && c.byName[path.Base(name)] == "") {
			c.byName[path.Base(name)] = name
		}
	}
	c.byName["rand"] = "math/rand/v2"
	c.importer = importer.ForCompiler(c.fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	return c
}

var (
	qualified   = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z]\w*)`)
	looksLikeGo = regexp.MustCompile(`:=|\bfunc |\bfor .*\brange\b`)
	// A snippet may use undeclared variables, and leave declared ones unused.
	tolerated = regexp.MustCompile(`^(undefined: [a-z]\w*|declared and not used: .*|.* imported and not used.*|` +
		`missing return|label .*|.* is not used)$`)
)

// ellipsis matches an omission in a snippet: a line, or the rest of a list or block.
var ellipsis = regexp.MustCompile(`(?m)^\s*(…|\.\.\.)$|,? …|\.\.\. \}`)

// faults returns the compile errors of a snippet, except for undeclared variables. It returns none
// for a text that is not Go.
func (c *checker) faults(snippet string) (found []string) {
	head := "package snippet\n" + c.imports(snippet)
	snippet = ellipsis.ReplaceAllStringFunc(snippet, func(left string) string {
		return strings.Repeat("}", strings.Count(left, "}"))
	})
	var f *ast.File
	var err error
	for _, form := range []string{"func _() error {\nfor {%s}\n}\n", "%s", "func _() {\n%s}\n}\n"} {
		f, err = parser.ParseFile(c.fset, "", head+fmt.Sprintf(form, snippet), 0)
		if err == nil {
			break
		}
	}
	if err != nil {
		if looksLikeGo.MatchString(snippet) {
			return []string{err.Error()}
		}
		return nil
	}
	config := types.Config{Importer: c.importer, Error: func(err error) {
		if message := err.(types.Error).Msg; !tolerated.MatchString(message) {
			found = append(found, message)
		}
	}}
	_, _ = config.Check("snippet", c.fset, []*ast.File{f}, nil) // Error has been called
	return found
}

// imports returns the imports of a snippet. A qualifier may also be a variable: it counts as a
// package if the package has one of the qualified names, or is not a sub-package.
func (c *checker) imports(snippet string) string {
	var imports []string
	for _, m := range qualified.FindAllStringSubmatch(snippet, -1) {
		name := c.byName[m[1]]
		if name == "" {
			continue
		}
		p, err := c.importer.Import(name)
		own, _ := strings.CutPrefix(name, module+"/")
		if err == nil && p.Scope().Lookup(m[2]) != nil || own == packageOf(own) {
			imports = append(imports, fmt.Sprintf("import %q\n", name))
		}
	}
	slices.Sort(imports)
	return strings.Join(slices.Compact(imports), "")
}

// snippetFaults returns the faults of all snippets in doc comments, and the number of snippets.
func (c *checker) snippetFaults(s source) (found []string, n int) {
	for _, d := range s {
		for _, f := range d.files {
			for _, doc := range docComments(f) {
				for _, block := range new(comment.Parser).Parse(doc.Text()).Content {
					code, ok := block.(*comment.Code)
					if !ok || f.isTest() {
						continue
					}
					n++
					for _, fault := range c.faults(code.Text) {
						found = append(found, fmt.Sprintf("%s: %s, in\n%s", f.at(doc.Pos()), fault, code.Text))
					}
				}
			}
		}
	}
	slices.Sort(found)
	return found, n
}

func TestSnippetsCompile(t *testing.T) {
	c := newChecker(t)
	found, n := c.snippetFaults(load(t).public())
	report(t, found)
	require.Greater(t, n, 20)
	for snippet, faults := range map[string]int{
		"seen := dedupe.New(dedupe.Options{Capacity: n})\nif seen.Add(url) {\n}": 0,
		"seen := dedupe.New(dedupe.Options{Size: 1})":                            1,
		"seen := dedupe.New(dedupe.Options{})\nseen.Insert(url)":                 1,
		"x := scheduler.NewQueue()":                                              1,
		"x := (":                                                                 1,
		"a line of text":                                                         0,
	} {
		require.Len(t, c.faults(snippet), faults, snippet)
	}
}
