package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A programFlag is a flag that a program declares.
type programFlag struct {
	name, help string
	field      string // receives the value; empty for a variable, which the compiler checks
	at         string
}

var isFlagFunc = regexp.MustCompile(`^(Bool|Duration|Float64|Func|BoolFunc|Int|Int64|String|Text|Uint|Uint64)?(Var)?$`)

// flagOf returns the flag that a call declares, such as flag.Int or FlagSet.IntVar.
func flagOf(f *file, call *ast.CallExpr) (d programFlag, ok bool) {
	fun, isSelector := call.Fun.(*ast.SelectorExpr)
	if !isSelector || fun.Sel.Name == "" || !isFlagFunc.MatchString(fun.Sel.Name) {
		return d, false
	}
	args := call.Args
	if strings.HasSuffix(fun.Sel.Name, "Var") && len(args) > 0 {
		if address, ok := args[0].(*ast.UnaryExpr); ok && address.Op == token.AND {
			if target, ok := address.X.(*ast.SelectorExpr); ok {
				d.field = target.Sel.Name
			}
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return d, false
	}
	d.name, ok = literal(args[0])
	help := args[len(args)-1]
	if strings.HasSuffix(fun.Sel.Name, "Func") {
		help = args[1]
	}
	if text, isText := literal(help); isText {
		d.help = text
	} else {
		d.help = "an expression"
	}
	d.at = f.at(call.Pos())
	return d, ok && isFlagName.MatchString(d.name)
}

var isFlagName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func literal(e ast.Expr) (text string, ok bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// deadFlags returns the flags that do nothing, since nothing reads the field that receives the
// value, the flags without a help text, and the number of all flags.
func deadFlags(files []*file) (found []string, n int) {
	var declared []programFlag
	uses := map[string]int{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if d, ok := flagOf(f, n); ok {
					declared = append(declared, d)
					uses[d.field]-- // the declaration itself
				}
			case *ast.SelectorExpr:
				uses[n.Sel.Name]++
			}
			return true
		})
	}
	for _, d := range declared {
		switch {
		case d.field != "" && uses[d.field] <= 0:
			found = append(found, fmt.Sprintf("%s: -%s sets %s, which nothing reads", d.at, d.name, d.field))
		case d.help == "":
			found = append(found, fmt.Sprintf("%s: -%s has no help text", d.at, d.name))
		}
	}
	return found, len(declared)
}

func TestFlagsAreReadAndExplained(t *testing.T) {
	var files []*file
	eachFile(t, func(name, text string) {
		if filepath.Ext(name) == ".go" && !strings.HasPrefix(name, "internal/house/") && !strings.HasSuffix(name, "_test.go") {
			f, err := parse(name, text)
			require.NoError(t, err)
			files = append(files, f)
		}
	})
	found, declared := deadFlags(files)
	report(t, found)
	require.Greater(t, declared, 150)

	f, err := parse("examples/p/main.go", `package main
		func main() {
			fs.IntVar(&c.Dead, "dead", 1, "sets nothing")
			fs.IntVar(&c.Used, "used", 1, "counts")
			fs.Bool("silent", false, "")
			use(c.Used)
		}`)
	require.NoError(t, err)
	found, _ = deadFlags([]*file{f})
	require.Len(t, found, 2)
}
