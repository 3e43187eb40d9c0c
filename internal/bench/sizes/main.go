// Command sizes shows what each package adds to a program. For each, it creates a module outside
// the repository that imports only this package, builds it, and counts the dependencies.
//
//	go run ./sizes
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

const module = "github.com/spinneret-go/spinneret"

var paths = []string{
	"scheduler", "robots", "robots/robotstxt", "fetch", "fetch/page", "fetch/sitemap", "fetch/brotli",
	"fetch/botauth", "fetch/cookies",
	"dedupe", "dedupe/exact", "dedupe/simhash", "dedupe/weburl", "dedupe/urlfilter",
	"hostcache", "hostcache/resolve",
	"revisit", "satstore", "pagerank", "archive",
	"archive/warc", "archive/export", "archive/scan",
}

func main() {
	root := flag.String("root", "../..", "`directory` of the repository")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

func run(root string) (err error) {
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "package\tmodules\tpackages of these\tadded to a program")
	base, _, err := build(root, "")
	if err != nil {
		return err
	}
	for _, path := range paths {
		size, packages, err := build(root, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		modules, foreign := count(packages)
		fmt.Fprintf(out, "%s\t%s\t%d\t%.1f MB\n", path, modules, foreign, float64(size-base)/1e6)
	}
	return out.Flush()
}

// build creates and builds a module whose program imports a package, or none. It returns the size
// and the packages of the program.
func build(root, path string) (size int64, packages []string, err error) {
	dir, err := os.MkdirTemp("", "outside")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, require := "package main\n\nfunc main() {}\n", ""
	if path != "" {
		text = fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", module+"/"+path)
		require = fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, root)
	}
	for name, text := range map[string]string{
		"main.go": text, "go.mod": "module outside.example\n\ngo 1.26\n" + require,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return 0, nil, err
		}
	}
	if _, err := command(dir, "mod", "tidy"); err != nil {
		return 0, nil, err
	}
	if _, err := command(dir, "build", "-ldflags=-s -w", "-o", "program", "."); err != nil {
		return 0, nil, err
	}
	listed, err := command(dir, "list", "-deps", "-f",
		"{{if not .Standard}}{{.ImportPath}}{{with .Module}} {{.Path}}{{end}}{{end}}", ".")
	if err != nil {
		return 0, nil, err
	}
	info, err := os.Stat(filepath.Join(dir, "program"))
	if err != nil {
		return 0, nil, err
	}
	return info.Size(), strings.Split(strings.TrimSpace(listed), "\n"), nil
}

func command(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("go %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

var shorter = strings.NewReplacer("github.com/", "", "golang.org/", "")

// count returns the other modules that a program needs, and the number of their packages in it.
func count(packages []string) (modules string, foreign int) {
	seen := map[string]bool{}
	var names []string
	for _, line := range packages {
		path, from, _ := strings.Cut(line, " ")
		if from == "outside.example" || path == "" {
			continue
		}
		if from == module {
			continue
		}
		foreign++
		if !seen[from] {
			seen[from] = true
			names = append(names, shorter.Replace(from))
		}
	}
	if names == nil {
		return "none", foreign
	}
	return strings.Join(names, ", "), foreign
}
