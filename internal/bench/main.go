// Command bench runs all measurements in this directory, one after the other, and writes their
// output to REPORT.md, with the machine, the versions and the commands.
//
//	go run .            about an hour, on an otherwise idle machine
//	go run . -short     about 5 minutes; small inputs, to check that everything works
//	go run . -only satstore,archive
//
// The environment variable SPINNERET_DATA names the directory with host names and web graphs. With
// -short it may be unset: then small data is generated. dedupe, satstore and soak need Linux.
//
// A step that fails does not stop the others. The report is written after each step.
//
// Each program measures a package and its peers in one run, alternating between them. Other pages
// link to the report rather than repeat its figures.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	short := flag.Bool("short", false, "use small inputs, to check that everything works")
	only := flag.String("only", "", "`packages` to measure, separated by commas; empty means all")
	out := flag.String("o", "REPORT.md", "`file` for the report; it keeps sections that are not measured again")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bench: unexpected argument %q; want -only %[1]s?\n", flag.Arg(0))
		os.Exit(2)
	}
	if *short && *out == "REPORT.md" {
		*out = filepath.Join(os.TempDir(), *out) // the default is for meaningful figures
	}
	if err := run(*out, *only, *short); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "the report is in", *out)
	if !*short {
		fmt.Fprintln(os.Stderr, "go run ./internal/house/figures, in the root of the repository, copies its figures")
	}
}

// run writes the report after each step, so that an interruption loses no earlier result.
func run(out, only string, short bool) error {
	sections := map[string]string{}
	if !short { // a short run discards the older report
		var err error
		if sections, err = readReport(out); err != nil {
			return err
		}
	}
	todo := chosen(only, short)
	if len(todo) == 0 {
		return fmt.Errorf("no package %q is measured; want one of %s", only, strings.Join(measured(), ", "))
	}
	done, err := ensureData(todo, short)
	defer done()
	if err != nil {
		return err
	}
	var failed []string
	for i, s := range todo {
		fmt.Fprintf(os.Stderr, "%s: %d of %d: %s\n", time.Now().Format(time.TimeOnly), i+1, len(todo), s.title())
		args := s.long
		if short {
			args = s.short
		}
		text, err := measure(s.dir, args)
		if err != nil {
			text += fmt.Sprintf("\n**Failed: %v**\n", err)
			failed = append(failed, s.title())
		}
		sections[s.title()] = text
		if err := writeReport(out, sections, short); err != nil {
			return err
		}
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, "; "))
	}
	return nil
}

// measured returns the packages of all steps.
func measured() (packages []string) {
	for _, s := range steps {
		packages = append(packages, s.pkg)
	}
	return slices.Compact(packages)
}

// chosen returns the steps to run.
func chosen(only string, short bool) (todo []step) {
	for _, s := range steps {
		if short && s.short == nil || only != "" && !slices.Contains(strings.Split(only, ","), s.pkg) {
			continue
		}
		todo = append(todo, s)
	}
	return todo
}

// ensureData sets SPINNERET_DATA for a short run without it, until done is called.
func ensureData(todo []step, short bool) (done func(), err error) {
	done = func() {}
	const name = "SPINNERET_DATA"
	if dir := os.Getenv(name); dir != "" {
		dir, err := filepath.Abs(dir) // some steps run in another directory
		return done, errors.Join(err, os.Setenv(name, dir))
	}
	if !short {
		if !slices.ContainsFunc(todo, func(s step) bool { return strings.Contains(strings.Join(s.long, " "), "$"+name) }) {
			return done, nil
		}
		return done, errors.New(name + " is not set: it names the directory with hosts.txt.zst and graphs/ " +
			"(go run ./data -o DIR makes small ones, enough for -short)")
	}
	dir, err := os.MkdirTemp("", "bench-data-*")
	if err != nil {
		return done, err
	}
	generate := exec.Command("go", "run", "./data", "-o", dir, "-hosts", "20000")
	generate.Stderr = os.Stderr
	return func() { os.RemoveAll(dir) }, errors.Join(generate.Run(), os.Setenv(name, dir))
}

func (s step) title() string { return s.pkg + ": " + s.what }

// readReport returns the sections of a report by title. A missing report has none.
func readReport(name string) (sections map[string]string, err error) {
	sections = map[string]string{}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return sections, nil
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, rest, _ := strings.Cut(section, "\n")
		sections[title] = strings.Trim(rest, "\n") + "\n"
	}
	return sections, err
}

func writeReport(name string, sections map[string]string, short bool) error {
	var b bytes.Buffer
	describe(&b, short)
	for _, s := range steps {
		if text, ok := sections[s.title()]; ok {
			fmt.Fprintf(&b, "\n## %s\n\n%s", s.title(), text)
		}
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// describe writes the conditions of the measurements.
func describe(w io.Writer, short bool) {
	fmt.Fprintf(w, "# Measurements\n\nWritten by `go run .` in this directory, on %s/%s, %d cores, %s.\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if short {
		fmt.Fprint(w, "\nSmall inputs: this checks that everything works. The figures are meaningless.\n")
	}
	for _, of := range []struct{ file, line string }{
		{"/proc/cpuinfo", "model name"}, {"/proc/meminfo", "MemTotal"},
	} {
		text, err := os.ReadFile(of.file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, of.line) {
				fmt.Fprintf(w, "\n%s: %s", of.file, strings.Join(strings.Fields(line), " "))
				break
			}
		}
		fmt.Fprintln(w)
	}
	all := slices.Sorted(slices.Values(append(libraries("."), libraries("../..")...)))
	fmt.Fprintf(w, "\nPeers and libraries: %s\n", strings.Join(slices.Compact(all), ", "))
}

// libraries returns the direct dependencies of the module in a directory, with their versions.
func libraries(dir string) (list []string) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{if and .Version (not .Replace) (not .Indirect)}}{{.Path}} {{.Version}}{{end}}", "all")
	cmd.Dir = dir
	all, err := cmd.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: versions of libraries:", err)
	}
	for line := range strings.Lines(string(all)) {
		list = append(list, strings.TrimSpace(line))
	}
	return list
}

// measure runs one command and returns its output, with the date and the duration.
func measure(dir string, args []string) (text string, err error) {
	where := ""
	if dir != "." {
		where = "cd " + dir + " && "
	}
	fmt.Fprintf(os.Stderr, "%sgo %s\n", where, strings.Join(args, " "))
	expanded := make([]string, len(args))
	for i, arg := range args { // only this variable: a benchmark pattern may end in $
		expanded[i] = strings.ReplaceAll(arg, "$SPINNERET_DATA", os.Getenv("SPINNERET_DATA"))
	}
	cmd := exec.Command("go", expanded...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), io.MultiWriter(&errs, os.Stderr)
	load, start := busy(), time.Now()
	err = cmd.Run()
	if err != nil {
		text := errs.Bytes()
		err = fmt.Errorf("%w: %s", err, text[max(0, len(text)-2000):])
	}
	printed := strings.TrimRight(out.String(), "\n")
	if data := os.Getenv("SPINNERET_DATA"); data != "" { // the report must not depend on its location
		printed = strings.ReplaceAll(printed, data, "$SPINNERET_DATA")
	}
	return fmt.Sprintf("%s, %v%s:\n\n```\n%sgo %s\n\n%s\n```\n", start.UTC().Format(time.DateOnly),
		time.Since(start).Round(time.Second), load, where, strings.Join(args, " "), printed), err
}

// busy returns the load of the machine in the previous minute, if the system reports it.
func busy() string {
	text, err := os.ReadFile("/proc/loadavg")
	load, _, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return ""
	}
	return ", load before " + load
}
