package house

import (
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forInterfaces are methods that are called through interfaces of other libraries.
var forInterfaces = []string{
	"String", "Error", "Unwrap", "Is", "RoundTrip", "CloseIdleConnections", "ServeHTTP", "Read", "Write",
	"Close", "WriteTo", "AppendBinary", "MarshalBinary", "UnmarshalBinary", "MarshalText", "UnmarshalText",
	"Scan", "Value", "Open", "Stat", "ReadDir", "Timeout", "Temporary", "Cookies", "SetCookies",
}

// forEmbedders are exports that only programs outside this repository call, by package. Nothing is
// added here without such a program: an Example is not a use.
var forEmbedders = map[string][]string{
	"archive":                 {"Archive.Erase", "Archive.Validators"},
	"archive/replay":          {"Changes"},
	"archive/scan":            {"Func"},
	"archive/warc":            {"Fields.Values"},
	"dedupe":                  {"Read", "Filter.WriteFile"},
	"dedupe/exact":            {"Set.Add", "Set.Entries", "Set.Sync", "Set.Trim"},
	"dedupe/weburl":           {"SURT"},
	"fetch":                   {"Reach.Allows"},
	"fetch/botauth":           {"Key.ID", "Signer.SetKeys", "Signer.Sign"},
	"fetch/page":              {"ToUTF8"},
	"hostcache":               {"Cache.Len"},
	"hostcache/hattrie":       {"Reverse"},
	"hostcache/resolve":       {"Resolver.DialContext"},
	"pagerank":                {"Read", "Frontier.NextReady", "Frontier.Release", "Frontier.WriteFile", "URLs.WriteFile", "Frontier.Drop", "URLs.Drop"},
	"robots":                  {"ReadResponse", "Cache.Allowed", "Cache.Lookup", "Cache.Store"},
	"robots/robotshttp":       {"Transport.Cache"},
	"robots/robotstxt":        {"File.Sitemaps", "Rules.Named", "Rules.Patterns"},
	"satstore":                {"Record.At", "Record.Delete", "Store.Delete"},
	"scheduler":               {"Lease.Task"},
	"scheduler/schedulerhttp": {"Transport.Hosts", "Transport.SetHost"},
	"scheduler/stepped":       {"New", "Scheduler.Add", "Scheduler.Done"},
}

// A usage records which packages use which functions, methods and variables. The names have the
// form "example.org/p.Function" or "example.org/p.Type.Method".
type usage struct {
	users map[string]map[string]bool // paths of the packages that use a name, by name
	// interfaces are the method sets of all interfaces in the source. A method that belongs to one
	// of them may be called through it.
	interfaces [][]string
}

// nameOf returns the name of a function, method or variable, or "" for other objects.
func nameOf(o types.Object) string {
	if o == nil || o.Pkg() == nil {
		return ""
	}
	name := o.Pkg().Path() + "."
	switch o := o.(type) {
	case *types.Func:
		if recv := o.Origin().Signature().Recv(); recv != nil {
			t := recv.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			named, ok := t.(*types.Named)
			if !ok {
				return ""
			}
			name += named.Obj().Name() + "."
		}
		return name + o.Name()
	case *types.Var:
		return name + o.Name()
	}
	return ""
}

// check type-checks files as a package and records what they use. Errors are ignored: at worst, a
// missing dependency hides a use.
func (u *usage) check(path string, files []*ast.File, fset *token.FileSet, imp types.Importer) *types.Package {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: imp, Error: func(error) {}}
	p, _ := config.Check(path, fset, files, info)
	for _, o := range info.Uses {
		name := nameOf(o)
		if u.users[name] == nil {
			u.users[name] = map[string]bool{}
		}
		u.users[name][path] = true
	}
	for expr, tv := range info.Types {
		if _, ok := expr.(*ast.InterfaceType); !ok {
			continue
		}
		var methods []string
		for m := range tv.Type.Underlying().(*types.Interface).Methods() {
			methods = append(methods, m.Name())
		}
		u.interfaces = append(u.interfaces, methods)
	}
	return p
}

// hasUser reports whether another package uses the name, or whether the name is a method of an
// interface that its type, with these methods, implements. Only the names of methods are compared.
func (u *usage) hasUser(pkg, recv, name string, methods []string) bool {
	full := pkg + "." + name
	if recv != "" {
		full = pkg + "." + recv + "." + name
	}
	for path := range u.users[full] {
		if path != pkg {
			return true
		}
	}
	return recv != "" && slices.ContainsFunc(u.interfaces, func(of []string) bool {
		missing := func(m string) bool { return !slices.Contains(methods, m) }
		return slices.Contains(of, name) && !slices.ContainsFunc(of, missing)
	})
}

// receiverOf returns the name of the type that a method belongs to, or "" for a function.
func receiverOf(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	t := decl.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// deadNames returns the exported functions, methods and variables without a user: no other package,
// program, test of a program, or comparison uses them, and they are not forEmbedders. Errors and constants are skipped:
// most callers need few of them. Types are skipped, since functions have them as parameters and
// results.
func (u *usage) deadNames(packages source, root string) (found []string) {
	for _, d := range packages {
		if strings.Contains(d.path, "internal/") || strings.Contains(d.path, "/cmd/") {
			continue
		}
		methods, embedded := map[string][]string{}, map[string][]string{}
		for _, f := range d.code() {
			for _, decl := range f.ast.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					recv := receiverOf(decl)
					methods[recv] = append(methods[recv], decl.Name.Name)
				case *ast.GenDecl:
					addEmbedded(embedded, decl)
				}
			}
		}
		var all func(name string) []string // with those of embedded types of the package
		all = func(name string) []string {
			found := slices.Clone(methods[name])
			for _, inner := range embedded[name] {
				found = append(found, all(inner)...)
			}
			return found
		}
		for _, f := range d.code() {
			for _, decl := range f.ast.Decls {
				recv := ""
				if fn, ok := decl.(*ast.FuncDecl); ok {
					recv = receiverOf(fn)
				}
				for _, id := range exportedBy(decl) {
					promised := slices.Contains(forEmbedders[d.path], strings.TrimPrefix(recv+"."+id.Name, "."))
					if !promised && !u.hasUser(root+d.path, recv, id.Name, all(recv)) {
						found = append(found, f.at(id.Pos())+": "+d.path+"."+recv+"."+id.Name+" has no user")
					}
				}
			}
		}
	}
	return found
}

// addEmbedded adds the types that the structs of a declaration embed, except through pointers.
func addEmbedded(to map[string][]string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		body, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range body.Fields.List {
			if inner, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
				to[t.Name.Name] = append(to[t.Name.Name], inner.Name)
			}
		}
	}
}

// exportedBy returns the functions, methods and variables that a declaration exports.
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

// A listed is a package as go list prints it.
type listed struct {
	ImportPath, Export, Dir            string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// useOf type-checks the packages of all modules, and the tests of programs.
func useOf(t *testing.T) *usage {
	t.Helper()
	u := &usage{users: map[string]map[string]bool{}}
	exports := map[string]string{} // shared: go list -deps omits what only tests import
	for _, dir := range []string{"", "internal/bench", "examples/clients", "examples/cluster"} {
		u.addModule(t, filepath.Join("..", "..", dir), exports)
	}
	return u
}

// addModule adds the uses in a module, and adds the files with export data to exports.
func (u *usage) addModule(t *testing.T, dir string, exports map[string]string) {
	t.Helper()
	list := exec.Command("go", "list", "-e", "-export", "-deps",
		"-json=ImportPath,Export,Dir,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	list.Dir = dir
	out, err := list.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, list.Start())
	var ours []listed
	for decoder := json.NewDecoder(out); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module+"/") {
			ours = append(ours, p)
		}
	}
	require.NoError(t, list.Wait())
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	for _, p := range ours {
		tests := p.XTestGoFiles
		if packageOf(strings.TrimPrefix(p.ImportPath, module+"/")) == "" {
			p.GoFiles = append(p.GoFiles, p.TestGoFiles...)
		} else {
			tests = nil // an Example is not a use
		}
		u.check(p.ImportPath, parseAll(t, fset, p.Dir, p.GoFiles), fset, imp)
		u.check(p.ImportPath+"_test", parseAll(t, fset, p.Dir, tests), fset, imp)
	}
}

func parseAll(t *testing.T, fset *token.FileSet, dir string, names []string) (files []*ast.File) {
	t.Helper()
	for _, name := range names {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}

// exports is a flag since the rule builds all modules, with other crawlers, brokers and databases.
var exports = flag.Bool("exports", false, "look for exports that no program uses, in all modules")

func TestExportsHaveUsers(t *testing.T) {
	if !*exports {
		t.Skip("-exports is not set")
	}
	report(t, useOf(t).deadNames(load(t).public(), module+"/"))
}

func TestExportsWithoutUsersAreFound(t *testing.T) {
	own := planted(t, "p/p.go", `package p
		func Used() { Dead() }
		func Dead() {}
		var ErrA, B int
		const C = 1
		type T struct{}
		func (T) Visit() {}
		func (T) Walk() {}
		func (T) Len() int { return 0 }
		type base struct{}
		func (base) Next() {}
		type E struct{ base }
		func (E) Step() {}`)
	user, err := parse("q/q.go", `package q
		import "p"
		var _ = p.Used
		type list struct{}
		func (list) Len() int { return 1 }
		type visitor interface { Visit() }
		type stepper interface { Next(); Step() }`)
	require.NoError(t, err)
	u := &usage{users: map[string]map[string]bool{}}
	p := u.check("p", []*ast.File{own[0].files[0].ast}, own[0].files[0].fset, nil)
	u.check("q", []*ast.File{user.ast}, user.fset, importerFunc(func(string) (*types.Package, error) { return p, nil }))
	require.Len(t, u.deadNames(own, ""), 4, "Dead, B, Walk and Len")
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
