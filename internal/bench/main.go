// Command bench runs every measurement of this directory, one after the other, and writes what they
// print to REPORT.md, with the machine, the versions and the commands.
//
//	go run .            about half an hour; the machine should do nothing else
//	go run . -short     some minutes; small inputs, and not to be compared
//	go run . -only satstore,archive
//
// Host names and web graphs are taken from the directory SPINNERET_DATA: without it hostcache fails,
// and real graphs are skipped. dedupe, satstore and soak need Linux.
//
// Each program compares with its peers by itself, in turns and in one run. Larger runs, and those that
// take hours, are described where the programs are, with what was seen.
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
	short := flag.Bool("short", false, "small inputs: to see that everything works")
	only := flag.String("only", "", "`packages` to measure, with commas between them; all if empty")
	out := flag.String("o", "REPORT.md", "`file` for the report; of what is not measured, it keeps what it has")
	flag.Parse()
	if *short && *out == "REPORT.md" {
		*out = filepath.Join(os.TempDir(), *out) // which is for figures that mean something
	}
	if err := run(*out, *only, *short); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "it is in", *out)
}

// run writes the report after each step, so that what was measured is there whatever happens.
func run(out, only string, short bool) error {
	sections := map[string]string{}
	if !short { // which keeps nothing: what was there says nothing about today
		var err error
		sections, err = readReport(out)
		if err := errors.Join(err, os.MkdirAll("plots", 0o755)); err != nil {
			return err
		}
	}
	var failed []string
	measured := false
	for _, s := range steps {
		args := s.long
		if short {
			args = s.short
		}
		if args == nil || only != "" && !slices.Contains(strings.Split(only, ","), s.room) {
			continue
		}
		measured = true
		text, err := measure(s.dir, args)
		if err != nil {
			text += fmt.Sprintf("\n**It failed: %v**\n", err)
			failed = append(failed, s.title())
		}
		if !short {
			for _, plot := range s.plots {
				text += fmt.Sprintf("\n![%s](%s)\n", s.title(), plot)
			}
		}
		sections[s.title()] = text
		if err := writeReport(out, sections, short); err != nil {
			return err
		}
	}
	if !measured {
		return fmt.Errorf("nothing of %q is measured", only)
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, "; "))
	}
	return nil
}

func (s step) title() string { return s.room + ": " + s.what }

// readReport returns the sections of a report by their titles. No report has none.
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

// describe writes what the figures depend on.
func describe(w io.Writer, short bool) {
	fmt.Fprintf(w, "# Measured\n\nBy `go run .` in this directory, on %s/%s, %d cores, %s.\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if short {
		fmt.Fprint(w, "\nSmall inputs: this shows that everything works, and no speed.\n")
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
	list := exec.Command("go", "list", "-m", "-f", "{{if not .Indirect}}{{.Path}} {{.Version}}{{end}}", "all")
	if all, err := list.Output(); err == nil {
		fmt.Fprintf(w, "\nPeers and libraries: %s\n", strings.Join(strings.Fields(
			strings.ReplaceAll(string(all), "\n", ", ")), " "))
	}
}

// measure runs one command and returns what it has printed, with when and how long.
func measure(dir string, args []string) (text string, err error) {
	where := ""
	if dir != "." {
		where = "cd " + dir + " && "
	}
	fmt.Fprintf(os.Stderr, "%sgo %s\n", where, strings.Join(args, " "))
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), io.MultiWriter(&errs, os.Stderr)
	load, start := busy(), time.Now()
	err = cmd.Run()
	if err != nil {
		said := errs.Bytes()
		err = fmt.Errorf("%w: %s", err, said[max(0, len(said)-2000):])
	}
	return fmt.Sprintf("%s, %v%s:\n\n```\n%sgo %s\n\n%s\n```\n", start.UTC().Format(time.DateOnly),
		time.Since(start).Round(time.Second), load, where, strings.Join(args, " "), bytes.TrimRight(out.Bytes(), "\n")), err
}

// busy tells how much else the machine had to do in the minute before, where the system says so.
func busy() string {
	text, err := os.ReadFile("/proc/loadavg")
	load, _, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return ""
	}
	return ", load before " + load
}
