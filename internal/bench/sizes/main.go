// Command sizes shows what each package adds to a program: it builds a program that imports only
// this package, and counts the dependencies.
//
//	go run ./sizes
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const root, module = "../..", "github.com/spinneret-go/spinneret"

var paths = []string{
	"scheduler", "robots", "robots/robotstxt", "fetch", "fetch/page", "fetch/sitemap", "fetch/brotli",
	"fetch/botauth", "fetch/cookies",
	"dedupe", "dedupe/exact", "dedupe/simhash", "dedupe/weburl", "dedupe/urlfilter",
	"hostcache", "hostcache/resolve",
	"revisit", "satstore", "pagerank", "archive",
	"archive/warc", "archive/export", "archive/scan",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	dir, err := os.MkdirTemp("", "sizes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	base, _, err := build(dir, "")
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "package\tmodules\tpackages of these\tadded to a program")
	for _, path := range paths {
		size, packages, err := build(dir, fmt.Sprintf("import _ %q\n", module+"/"+path))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		modules, foreign := count(packages)
		fmt.Fprintf(out, "%s\t%s\t%d\t%.1f MB\n", path, modules, foreign, float64(size-base)/1e6)
	}
	return out.Flush()
}

// build builds a program in the context of our module, which decides the versions of dependencies.
// It returns its size and its packages, each with its module.
func build(dir, imports string) (size int64, packages string, err error) {
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	text := "package main\n\n" + imports + "\nfunc main() {}\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return 0, "", err
	}
	if _, err := command("build", "-ldflags=-s -w", "-o", program, source); err != nil {
		return 0, "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return 0, "", err
	}
	packages, err = command("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", source)
	return info.Size(), packages, err
}

func command(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

var shorter = strings.NewReplacer("github.com/", "", "golang.org/", "")

// count returns the other modules that a program needs, and the number of their packages in it.
func count(packages string) (modules string, foreign int) {
	var names []string
	for from := range strings.FieldsSeq(packages) {
		if from == module {
			continue
		}
		foreign++
		if name := shorter.Replace(from); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none", foreign
	}
	return strings.Join(names, ", "), foreign
}
