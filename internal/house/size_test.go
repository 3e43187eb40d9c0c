package house

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits that keep a function on a screen and a file readable in one sitting.
const (
	maxFuncLines   = 70
	p95FuncLines   = 45
	maxFileLines   = 500
	maxColumns     = 100
	tabWidth       = 4
	longLinesShare = 0.005
)

// bigFunctions returns the functions that do not fit on a screen.
func bigFunctions(s source) (found []string) {
	var lengths []int
	for _, f := range s.code() {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.lines(fn)
			lengths = append(lengths, n)
			if n > maxFuncLines {
				found = append(found, fmt.Sprintf("%s: %s has %d lines, over %d",
					f.at(fn.Pos()), fn.Name.Name, n, maxFuncLines))
			}
		}
	}
	slices.Sort(lengths)
	if n := len(lengths); n > 0 && lengths[n*95/100] > p95FuncLines {
		found = append(found, fmt.Sprintf("one function in twenty has %d lines or more, over %d",
			lengths[n*95/100], p95FuncLines))
	}
	return found
}

func TestFunctionsFitOnAScreen(t *testing.T) {
	report(t, bigFunctions(load(t)))
	big := "package p\nfunc f() {" + strings.Repeat("\n", maxFuncLines) + "}"
	require.Len(t, bigFunctions(planted(t, "p/p.go", big)), 2) // that one, and one in twenty
}

// bigFiles returns the files, tests included, that cannot be read in one sitting.
func bigFiles(s source) (found []string) {
	for _, d := range s {
		for _, f := range d.files {
			if n := strings.Count(f.text, "\n"); n > maxFileLines {
				found = append(found, fmt.Sprintf("%s has %d lines, over %d", f.name, n, maxFileLines))
			}
		}
	}
	return found
}

func TestFilesAreShort(t *testing.T) {
	report(t, bigFiles(load(t)))
	big := "package p" + strings.Repeat("\n", maxFileLines+1)
	require.Len(t, bigFiles(planted(t, "p/p.go", big)), 1)
}

// longLines returns the lines that are too wide, if there are too many.
func longLines(s source) (found []string) {
	total := 0
	for _, f := range s.code() {
		for i, line := range strings.Split(f.text, "\n") {
			total++
			width := len([]rune(line)) + (tabWidth-1)*strings.Count(line, "\t")
			if width > maxColumns {
				found = append(found, fmt.Sprintf("%s:%d: %d columns", f.name, i+1, width))
			}
		}
	}
	if float64(len(found)) <= longLinesShare*float64(total) {
		return nil
	}
	return found
}

func TestLinesAreShort(t *testing.T) {
	report(t, longLines(load(t)))
	long := "package p // " + strings.Repeat("x", maxColumns)
	require.Len(t, longLines(planted(t, "p/p.go", long)), 1)
}

// Limits of cyclomatic complexity.
const (
	maxPaths = 22 // of any function
	p95Paths = 10
)

// tangles returns the functions that have too many paths.
func tangles(s source) (found []string) {
	var all []int
	for _, f := range s.code() {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := paths(fn)
			all = append(all, n)
			if n > maxPaths {
				found = append(found, fmt.Sprintf("%s: %s has %d paths, over %d",
					f.at(fn.Pos()), fn.Name.Name, n, maxPaths))
			}
		}
	}
	slices.Sort(all)
	if n := len(all); n > 0 && all[n*95/100] > p95Paths {
		found = append(found, fmt.Sprintf("one function in twenty has %d paths or more, over %d",
			all[n*95/100], p95Paths))
	}
	return found
}

// paths returns the cyclomatic complexity of a function. Branches of a switch with a single
// statement do not count: such a table is long, not tangled.
func paths(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CommClause:
			n++
		case *ast.CaseClause:
			if len(node.Body) > 1 {
				n++
			}
		case *ast.BinaryExpr:
			if op := node.Op.String(); op == "&&" || op == "||" {
				n++
			}
		}
		return true
	})
	return n
}

func TestFunctionsAreNotTangled(t *testing.T) {
	report(t, tangles(load(t)))
	tangled := "package p\nfunc f(b bool) {" + strings.Repeat("if b {};", maxPaths) + "}"
	require.Len(t, tangles(planted(t, "p/p.go", tangled)), 2) // that one, and one in twenty
}
