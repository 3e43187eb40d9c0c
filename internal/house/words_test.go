package house

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// postponed matches the marks of postponed work.
var postponed = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|not imple` + `mented)\b`)

// postponedWork returns the lines with such marks.
func postponedWork(s source) (found []string) {
	for _, d := range s {
		for _, f := range d.files {
			for i, line := range strings.Split(f.text, "\n") {
				if m := postponed.FindString(line); m != "" {
					found = append(found, fmt.Sprintf("%s:%d: %s", f.name, i+1, m))
				}
			}
		}
	}
	return found
}

func TestNoWorkIsPostponed(t *testing.T) {
	report(t, postponedWork(load(t)))
	require.Len(t, postponedWork(planted(t, "p/p.go", "package p // TO"+"DO: think")), 1)
}

// misnamedTests returns the files that import testing although their names do not end in _test.go:
// every program would then link the testing package.
func misnamedTests(s source) (found []string) {
	for _, f := range s.code() {
		for _, spec := range f.ast.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil && forTests(path) {
				found = append(found, f.name+" imports testing but is not a test file")
			}
		}
	}
	return found
}

func TestTestFilesAreNamedAsSuch(t *testing.T) {
	report(t, misnamedTests(load(t)))
	require.Len(t, misnamedTests(planted(t, "p/x_test_1.go", `package p; import _ "testing"`)), 1)
}
