package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/spinneret-go/spinneret"

// A file is one parsed source file.
type file struct {
	name string // relative to the module's root, with slashes
	text string
	fset *token.FileSet
	ast  *ast.File
}

func (f *file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// at renders a position as file:line, which terminals and editors turn into a link.
func (f *file) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(p).Line)
}

// A folder is one directory with Go files.
type folder struct {
	path  string // relative to the module's root, "." for the root
	files []*file
}

func (d *folder) code() []*file {
	return slices.DeleteFunc(slices.Clone(d.files), (*file).isTest)
}

// A source is the input of a rule: a module's folders in order of their paths.
type source []*folder

// code returns all files of the source except tests.
func (s source) code() (all []*file) {
	for _, d := range s {
		all = append(all, d.code()...)
	}
	return all
}

// public returns the folders that make up the library's public packages.
func (s source) public() (public source) {
	for _, d := range s {
		if packageOf(d.path) != "" {
			public = append(public, d)
		}
	}
	return public
}

// packageOf returns the public package that a folder belongs to, or "" for other folders.
func packageOf(path string) string {
	first, _, _ := strings.Cut(path, "/")
	if first == "." || first == "internal" || first == "examples" {
		return ""
	}
	return first
}

// parse parses a text: a file of the repository, or a violation that a test plants.
func parse(name, text string) (*file, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{name: name, text: text, fset: fset, ast: tree}, nil
}

// planted returns a source that consists of one file.
func planted(t *testing.T, name, text string) source {
	t.Helper()
	f, err := parse(name, text)
	require.NoError(t, err)
	return source{{path: filepath.ToSlash(filepath.Dir(name)), files: []*file{f}}}
}

// load parses the whole module.
func load(t *testing.T) source {
	t.Helper()
	root := filepath.Join("..", "..")
	folders := map[string]*folder{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return fs.SkipDir // another module, which users of a package do not build
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		return addFile(folders, root, path)
	})
	require.NoError(t, err)
	var all source
	for _, d := range folders {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	require.NotEmpty(t, all)
	return all
}

// addFile parses one file and adds it to its folder.
func addFile(folders map[string]*folder, root, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	f, err := parse(name, string(text))
	if err != nil {
		return err
	}
	dir := filepath.ToSlash(filepath.Dir(name))
	if folders[dir] == nil {
		folders[dir] = &folder{path: dir}
	}
	folders[dir].files = append(folders[dir].files, f)
	return nil
}

// report fails the test with one line per finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

// docComments returns the comments of a file that godoc shows.
func docComments(f *file) (docs []*ast.CommentGroup) {
	docs = append(docs, f.ast.Doc)
	for _, decl := range f.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			docs = append(docs, decl.Doc)
		case *ast.GenDecl:
			docs = append(docs, decl.Doc)
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					docs = append(docs, n.Doc)
				case *ast.ValueSpec:
					docs = append(docs, n.Doc)
				case *ast.Field:
					docs = append(docs, n.Doc)
				}
				return true
			})
		}
	}
	return docs
}

// eachFile visits the files of the repository, by their names with slashes.
func eachFile(t *testing.T, visit func(name, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); entry.IsDir() || ext != ".md" && ext != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		visit(filepath.ToSlash(name), string(text))
		return err
	})
	require.NoError(t, err)
}
