// Command licences lists the modules that programs built from this repository contain, with the
// licences stated in their files. It writes docs/licences.md:
//
//	go run ./internal/house/licences > docs/licences.md
//
// It fails for a module with an unknown licence, so that every new licence is reviewed.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const about = `# Licences

The licence of spinneret is [Apache-2.0](../LICENSE). These modules can be part of a program that uses
it; the licences are those stated in their files. Tests and measurements use additional modules. A
module with several licences contains code from several sources: its file says which applies to what.

`

const bsd2 = "BSD-2-Clause"

// marks are phrases that identify the text of a licence.
var marks = []struct{ licence, mark string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "Neither the name of"},
	{bsd2, "Redistributions in binary form must reproduce"}, // also in BSD-3-Clause
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
}

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func write(w io.Writer) error {
	text := about
	for _, part := range []struct{ title, dir string }{
		{"The library, and examples of the same module", "."},
		{"Additional modules of `examples/cluster`", "examples/cluster"},
		{"Additional modules of `examples/clients`", "examples/clients"},
	} {
		modules, err := modulesOf(part.dir)
		if err != nil {
			return err
		}
		text += "## " + part.title + "\n\n| module | licences |\n| --- | --- |\n"
		for _, m := range modules {
			if strings.Contains(text, "| "+m.path+" |") {
				continue
			}
			licences, err := licencesIn(m.dir)
			if err != nil {
				return fmt.Errorf("%s: %w", m.path, err)
			}
			text += fmt.Sprintf("| %s | %s |\n", m.path, strings.Join(licences, ", "))
		}
		text += "\n"
	}
	_, err := io.WriteString(w, strings.TrimSuffix(text, "\n"))
	return err
}

type module struct{ path, dir string }

// modulesOf returns the modules that a directory's programs contain, except ours, sorted.
func modulesOf(dir string) (all []module, err error) {
	const ours = "github.com/spinneret-go/spinneret"
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		path, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if found && path != ours && !strings.HasPrefix(path, ours+"/") {
			all = append(all, module{path, dir})
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(all), nil
}

// licencesIn returns the licences in a module's licence file.
func licencesIn(dir string) (found []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	for _, name := range []string{"LICENSE.txt", "LICENSE.md", "LICENCE"} {
		if errors.Is(err, fs.ErrNotExist) {
			text, err = os.ReadFile(filepath.Join(dir, name))
		}
	}
	if err != nil {
		return nil, err
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, m := range marks {
		if m.licence == bsd2 && slices.Contains(found, "BSD-3-Clause") {
			continue
		}
		if strings.Contains(words, m.mark) && !slices.Contains(found, m.licence) {
			found = append(found, m.licence)
		}
	}
	if found == nil {
		err = errors.New("unknown licence: review it, and add a mark")
	}
	return found, err
}
