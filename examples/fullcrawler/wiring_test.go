package main

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheWiringIsShort: package main is the data flow between the packages, to be read in ten
// minutes. Anything else belongs in stage or cockpit.
func TestTheWiringIsShort(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	lines := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		var s scanner.Scanner
		file := token.NewFileSet().AddFile(name, -1, len(text))
		s.Init(file, text, nil, 0) // without comments
		last := 0
		for {
			pos, tok, _ := s.Scan()
			if tok == token.EOF {
				break
			}
			if line := file.Line(pos); line != last {
				lines, last = lines+1, line
			}
		}
	}
	require.LessOrEqual(t, lines, 1000, "lines of code")
	t.Log(lines, "lines of code")
}
