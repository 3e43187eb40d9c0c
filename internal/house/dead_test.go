package house

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forInterfaces are methods that are called through interfaces of the standard library.
var forInterfaces = []string{
	"String", "Error", "Unwrap", "Is", "RoundTrip", "ServeHTTP", "Read", "Write", "Close", "WriteTo",
	"AppendBinary", "MarshalBinary", "UnmarshalBinary", "MarshalText", "UnmarshalText",
}

// namesUsed returns the names that a file uses, other than where it declares them.
func namesUsed(f *file) map[string]bool {
	declared := map[*ast.Ident]bool{}
	for _, decl := range f.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			declared[decl.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declared[spec.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						declared[name] = true
					}
				}
			}
		}
	}
	used := map[string]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !declared[id] && id.IsExported() {
			used[id.Name] = true
		}
		return true
	})
	return used
}

// deadNames returns the exported functions, methods and variables without a user: no other package,
// Example, program or comparison uses them, tests of programs included. Names are compared without
// types: a name in two packages may hide a dead one, but every reported name is dead. Errors and
// constants are skipped: most callers need few of them.
func deadNames(packages source, others []*file) (found []string) {
	users := map[string][]string{} // name: folders that use it
	note := func(dir string, f *file) {
		for name := range namesUsed(f) {
			users[name] = append(users[name], dir)
		}
	}
	for _, f := range others {
		note(filepath.ToSlash(filepath.Dir(f.name)), f)
	}
	for _, d := range packages {
		if strings.Contains(d.path, "internal/") || strings.Contains(d.path, "/cmd/") {
			continue
		}
		for _, f := range d.code() {
			for _, decl := range f.ast.Decls {
				for _, id := range exportedBy(decl) {
					lives := slices.ContainsFunc(users[id.Name], func(dir string) bool {
						return dir != d.path
					})
					if !lives {
						found = append(found, f.at(id.Pos())+": "+d.path+"."+id.Name+" has no user")
					}
				}
			}
		}
	}
	return found
}

// exportedBy returns the functions, methods and variables that a declaration exports. Types are
// skipped: they are used through functions.
func exportedBy(decl ast.Decl) (names []*ast.Ident) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		called := decl.Recv != nil && slices.Contains(forInterfaces, decl.Name.Name)
		if receiverExported(decl) && !called {
			names = append(names, decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.VAR {
				names = append(names, spec.Names...)
			}
		}
	}
	return slices.DeleteFunc(names, func(id *ast.Ident) bool {
		return !id.IsExported() || strings.HasPrefix(id.Name, "Err")
	})
}

// usersOf returns the files that count as users: all but the tests of the packages themselves.
// Examples count for their own package, too.
func usersOf(t *testing.T) (users []*file) {
	t.Helper()
	eachFile(t, func(name, text string) {
		program := strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "internal/bench/")
		example := strings.HasSuffix(name, "example_test.go")
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") && !program && !example {
			return
		}
		f, err := parse(name, text)
		require.NoError(t, err)
		if example {
			f.name = "example/" + f.name
		}
		users = append(users, f)
	})
	return users
}

func TestExportsHaveUsers(t *testing.T) {
	for _, dead := range deadNames(load(t).public(), usersOf(t)) {
		t.Error(dead)
	}
	text := "package p\nfunc Used() { Dead() }\nfunc Dead() {}\nvar ErrA, B int\nconst C = 1"
	user := planted(t, "examples/q/q.go", "package q\nvar _ = p.Used")[0].files
	require.Len(t, deadNames(planted(t, "p/p.go", text), user), 2, "Dead and B")
}
