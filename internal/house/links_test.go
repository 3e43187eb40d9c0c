package house

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mdLink matches the target of a link in Markdown.
var mdLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// deadLinks returns the links of a document in dir whose targets do not exist.
func deadLinks(dir, document string) (found []string) {
	for _, m := range mdLink.FindAllStringSubmatch(document, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(target))); err != nil {
			found = append(found, "dead link: "+m[1])
		}
	}
	return found
}

var mdCode = regexp.MustCompile("(?s)```.*?```")

func TestLinksResolve(t *testing.T) {
	root := filepath.Join("..", "..")
	documents := 0
	eachFile(t, func(name, text string) {
		if filepath.Ext(name) != ".md" {
			return
		}
		documents++
		dir := filepath.Join(root, filepath.FromSlash(filepath.Dir(name)))
		for _, dead := range deadLinks(dir, mdCode.ReplaceAllString(text, "")) {
			t.Errorf("%s: %s", name, dead)
		}
	})
	require.Greater(t, documents, 10)
	require.Len(t, deadLinks(root, "[a](README.md) [b](docs/none.md) [c](https://a.example/) [d](#e)"), 1)
}

// docLink matches a link in a doc comment to a name in the same package, or in another one.
var docLink = regexp.MustCompile(`\[(\*?(?:[a-z]+\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// namesOf returns the exported names of a folder, with methods and fields as Type.Name.
func namesOf(d *folder) map[string]bool {
	names := map[string]bool{}
	for _, f := range d.code() {
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				names[receiverDot(decl)+decl.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					addSpec(names, spec)
				}
			}
		}
	}
	return names
}

// receiverDot returns "T." for a method of T, and otherwise "".
func receiverDot(decl *ast.FuncDecl) string {
	if name, _ := receiver(decl); name != "" {
		return name + "."
	}
	return ""
}

func addSpec(names map[string]bool, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[spec.Name.Name] = true
		fields := &ast.FieldList{}
		switch t := spec.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		}
		for _, field := range fields.List {
			for _, name := range field.Names {
				names[spec.Name.Name+"."+name.Name] = true
			}
		}
	}
}

// brokenDocLinks returns the links in doc comments to names that do not exist. Packages are
// identified by the last part of their path, which several may share; links to foreign packages are
// skipped.
func brokenDocLinks(s source) (found []string) {
	packages := map[string]map[string]bool{}
	for _, d := range s {
		name := filepath.Base(d.path)
		if packages[name] == nil {
			packages[name] = map[string]bool{}
		}
		maps.Copy(packages[name], namesOf(d))
	}
	for _, d := range s {
		own := namesOf(d)
		for _, f := range d.code() {
			for _, group := range f.ast.Comments {
				for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
					name, names := strings.TrimPrefix(m[1], "*"), own
					if pkg, rest, qualified := strings.Cut(name, "."); qualified && pkg == strings.ToLower(pkg) {
						name, names = rest, packages[pkg]
					}
					if names != nil && !names[name] {
						found = append(found, fmt.Sprintf("%s: dead link [%s]", f.at(group.Pos()), m[1]))
					}
				}
			}
		}
	}
	return found
}

func TestDocLinksResolve(t *testing.T) {
	report(t, brokenDocLinks(load(t)))
	text := "// Package p has [T], [T.M], [T.F], [C] and not [U], [T.N] or [Q].\npackage p\n" +
		"type T struct{ F int }\nfunc (t *T) M() {}\nconst C = 1\n"
	require.Len(t, brokenDocLinks(planted(t, "p/p.go", text)), 3)
}

// idleExamples returns the examples without an output comment, which are never run.
func idleExamples(s source) (found []string) {
	for _, d := range s {
		for _, f := range d.files {
			for _, decl := range f.ast.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || !f.isTest() || !strings.HasPrefix(fn.Name.Name, "Example") {
					continue
				}
				if !hasOutput(f, fn) {
					found = append(found, f.at(fn.Pos())+": "+fn.Name.Name+" has no output, so it is not run")
				}
			}
		}
	}
	return found
}

func hasOutput(f *file, fn *ast.FuncDecl) bool {
	for _, group := range f.ast.Comments {
		text := strings.ToLower(strings.TrimSpace(group.Text()))
		if fn.Pos() < group.Pos() && group.End() < fn.End() &&
			(strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")) {
			return true
		}
	}
	return false
}

func TestExamplesAreRun(t *testing.T) {
	report(t, idleExamples(load(t)))
	text := "package p\nfunc ExampleA() {\n\t// Output: a\n}\nfunc ExampleB() {}\n"
	require.Len(t, idleExamples(planted(t, "p/p_test.go", text)), 1)
}
