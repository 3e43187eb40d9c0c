package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// undocumented returns the exported names without a comment.
func undocumented(s source) (found []string) {
	for _, f := range s.code() {
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Name.IsExported() && receiverExported(decl) && decl.Doc.Text() == "" {
					found = append(found, f.at(decl.Pos())+": "+decl.Name.Name+" has no comment")
				}
			case *ast.GenDecl:
				found = append(found, undocumentedSpecs(f, decl)...)
			}
		}
	}
	return found
}

func undocumentedSpecs(f *file, decl *ast.GenDecl) (found []string) {
	for _, spec := range decl.Specs {
		var names []*ast.Ident
		var doc string
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names, doc = []*ast.Ident{spec.Name}, spec.Doc.Text()+spec.Comment.Text()
		case *ast.ValueSpec:
			names, doc = spec.Names, spec.Doc.Text()+spec.Comment.Text()
		}
		for _, name := range names {
			if name.IsExported() && decl.Doc.Text()+doc == "" {
				found = append(found, f.at(name.Pos())+": "+name.Name+" has no comment")
			}
		}
	}
	return found
}

// receiverExported reports whether godoc shows a function, as opposed to a method of an unexported
// type.
func receiverExported(decl *ast.FuncDecl) bool {
	name, _ := receiver(decl)
	return name == "" || ast.IsExported(name)
}

// receiver returns the receiver's type name and whether it is a pointer; "" for functions.
func receiver(decl *ast.FuncDecl) (name string, pointer bool) {
	if decl.Recv == nil {
		return "", false
	}
	expr := decl.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr, pointer = star.X, true
	}
	switch generic := expr.(type) {
	case *ast.IndexExpr:
		expr = generic.X
	case *ast.IndexListExpr:
		expr = generic.X
	}
	if ident, ok := expr.(*ast.Ident); ok {
		name = ident.Name
	}
	return name, pointer
}

func TestExportedNamesAreDocumented(t *testing.T) {
	report(t, undocumented(load(t)))
	for _, text := range []string{
		"package p\nfunc F() {}",
		"package p\ntype T struct{}",
		"package p\nconst C = 1",
		"package p\n// T is.\ntype T struct{}\nfunc (t *T) M() {}",
		"package p\n// T is.\ntype T[V any] struct{}\nfunc (t *T[V]) M() {}",
	} {
		require.Len(t, undocumented(planted(t, "p/p.go", text)), 1, text)
	}
}

// maxPackageDoc keeps a package comment on one screen.
const maxPackageDoc = 40

// packageDocs returns the packages without a comment for pkg.go.dev. A blank line between the
// comment and the package clause hides it, and the parser then reports no comment.
func packageDocs(s source) (found []string) {
	for _, d := range s {
		code := d.code()
		if len(code) == 0 {
			continue
		}
		name := code[0].ast.Name.Name
		want := "Package " + name + " "
		if name == "main" {
			want = "Command "
		}
		var docs []string
		for _, f := range code {
			if text := f.ast.Doc.Text(); text != "" {
				docs = append(docs, text)
			}
		}
		switch {
		case len(docs) != 1:
			found = append(found, fmt.Sprintf("%s: %d package comments, want 1", d.path, len(docs)))
		case !strings.HasPrefix(docs[0], want):
			found = append(found, fmt.Sprintf("%s: the comment must begin %q", d.path, want))
		case strings.Count(docs[0], "\n") > maxPackageDoc:
			found = append(found, fmt.Sprintf("%s: the comment has over %d lines", d.path, maxPackageDoc))
		}
	}
	return found
}

func TestPackagesHaveDocs(t *testing.T) {
	report(t, packageDocs(load(t)))
	for _, text := range []string{
		"package p",
		"// Package p does.\n\npackage p",
		"// package p does.\npackage p",
		"// Package p does.\n" + strings.Repeat("// more\n", maxPackageDoc) + "package p",
	} {
		require.Len(t, packageDocs(planted(t, "p/p.go", text)), 1, text)
	}
}

// concurrency has three phrases, one of which must be in the comment of each type with pointer
// methods.
var concurrency = []string{
	"methods are safe for concurrent use.",
	"is not safe for concurrent use.",
	"by one goroutine at a time.",
}

// silentTypes returns the exported types with exported pointer methods whose comments do not state
// their concurrency.
func silentTypes(s source) (found []string) {
	for _, d := range s {
		shared := map[string]bool{}
		for _, f := range d.code() {
			for _, decl := range f.ast.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.IsExported() {
					if name, pointer := receiver(fn); pointer {
						shared[name] = true
					}
				}
			}
		}
		eachType(d, func(f *file, spec *ast.TypeSpec, doc string) {
			if !shared[spec.Name.Name] || !spec.Name.IsExported() || isErrorType(spec) {
				return
			}
			flat := strings.Join(strings.Fields(doc), " ")
			for _, phrase := range concurrency {
				if strings.Contains(flat, phrase) {
					return
				}
			}
			found = append(found, f.at(spec.Pos())+": "+spec.Name.Name+" does not state its concurrency")
		})
	}
	return found
}

// isErrorType exempts errors, which are read-only values.
func isErrorType(spec *ast.TypeSpec) bool { return strings.HasSuffix(spec.Name.Name, "Error") }

func eachType(d *folder, visit func(f *file, spec *ast.TypeSpec, doc string)) {
	for _, f := range d.code() {
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				spec := spec.(*ast.TypeSpec)
				visit(f, spec, gen.Doc.Text()+spec.Doc.Text())
			}
		}
	}
}

func TestTypesStateTheirConcurrency(t *testing.T) {
	report(t, silentTypes(load(t)))
	silent := "package p\n// T is.\ntype T struct{}\n// M does.\nfunc (t *T) M() {}"
	require.Len(t, silentTypes(planted(t, "p/p.go", silent)), 1)
}

// zeroWords are the phrases that introduce the meaning of a field's zero value.
var zeroWords = []string{"0 means", `"" means`, "nil means", "false means", "zero means", "Zero or negative means", "The zero"}

// silentOptions returns the fields of Options structs whose comments do not state the meaning of
// zero.
func silentOptions(s source) (found []string) {
	for _, d := range s {
		eachType(d, func(f *file, spec *ast.TypeSpec, _ string) {
			fields, ok := spec.Type.(*ast.StructType)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Options") || !spec.Name.IsExported() {
				return
			}
			for _, field := range fields.Fields.List {
				text := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
				if !containsAny(text, zeroWords) {
					found = append(found, f.at(field.Pos())+": the field does not state the meaning of zero")
				}
			}
		})
	}
	return found
}

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func TestOptionsStateTheirZero(t *testing.T) {
	report(t, silentOptions(load(t)))
	silent := "package p\n// Options are.\ntype Options struct {\n\tSize int // bytes\n}"
	require.Len(t, silentOptions(planted(t, "p/p.go", silent)), 1)
}
