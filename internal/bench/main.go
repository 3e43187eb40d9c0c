// Command bench runs every measurement of this directory, one after the other, and writes what they
// print to REPORT.md, with the machine, the versions and the commands.
//
//	go run .            some hours; the machine should do nothing else
//	go run . -short     a quarter of an hour; small inputs, and not to be compared
//	go run . -only satstore,archive
//
// Each program compares with its peers by itself, in turns and in one run.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A step is one command.
type step struct {
	room, what  string
	dir         string // from here
	long, short []string
}

func goTest(flags ...string) []string { return append([]string{"test", "-run", "^$"}, flags...) }

func goRun(args ...string) []string { return append([]string{"run"}, args...) }

// bench makes a step of a package's own benchmarks.
func bench(room, what, pattern string) step {
	return step{room, what, "../..", goTest("-bench", pattern, "-count", "5", "./"+room),
		goTest("-bench", pattern, "-benchtime", "100x", "-short", "./"+room)}
}

var steps = []step{
	bench("scheduler", "cycles, memory and the collector", "."),
	bench("robots", "check and parse", "."),
	{"robots", "beside its peers", ".", goRun("./robots"), goRun("./robots", "-rounds", "1")},
	{"fetch", "Get beside its floors and peers", ".", goRun("./fetch", "get"),
		goRun("./fetch", "-rounds", "1", "-pages", "2000", "get")},
	{"fetch", "links beside its floors and peers", ".", goRun("./fetch", "links"), goRun("./fetch", "-rounds", "1", "links")},
	{"fetch", "memory of a fetch under way", ".", goRun("./fetch", "memory"), goRun("./fetch", "-rounds", "1", "memory")},
	bench("dedupe", "canonical form and filter", "."),
	{"dedupe", "the exact set beside B-tree and LSM", ".", goRun("./dedupe", "-urls", "1e6", "-sightings", "1e7", "-rounds", "3"),
		goRun("./dedupe", "-urls", "1e4", "-sightings", "1e5")},
	{"hostcache", "one million names", ".", goRun("./hostcache", "-n", "1000000"),
		goRun("./hostcache", "-n", "20000", "-rounds", "1")},
	{"hostcache", "ten million names", ".", goRun("./hostcache", "-n", "10000000"), nil},
	bench("revisit", "a visit", "."),
	{"satstore", "beside B-tree and LSM", ".",
		goRun("./satstore", "-records", "1e6,5e6,17.5e6", "-engines", "sat,basic,bolt,pebble-id,pebble-time"),
		goRun("./satstore", "-records", "2e4", "-engines", "sat,basic,bolt,pebble-time", "-rounds", "1")},
	bench("pagerank", "the frontier", "."),
	{"pagerank", "on graphs", ".", goTest("-bench", ".", "./pagerank"), goTest("-bench", ".", "-short", "-benchtime", "1x", "./pagerank")},
	{"archive", "append, read, index, snapshot, scan", ".", goRun("./archive"), goRun("./archive", "-pages", "200", "-rounds", "1")},
	{"fullcrawler", "beside other crawlers", ".", goRun("./crawl"), goRun("./crawl", "-rounds", "1", "-hosts", "10", "-pages", "20")},
	{"all", "from outside, alone", ".", goRun("./rooms"), goRun("./rooms")},
}

func main() {
	short := flag.Bool("short", false, "small inputs: to see that everything works")
	only := flag.String("only", "", "`rooms` to measure, with commas between them; all if empty")
	out := flag.String("o", "REPORT.md", "`file` for the report")
	flag.Parse()
	if err := run(*out, *only, *short); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run writes the report as it goes, so that what was measured is there whatever happens.
func run(out, only string, short bool) (err error) {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := io.MultiWriter(f, os.Stdout)
	describe(w, short)
	var failed []string
	for _, s := range steps {
		args := s.long
		if short {
			args = s.short
		}
		if args == nil || only != "" && !slices.Contains(strings.Split(only, ","), s.room) {
			continue
		}
		fmt.Fprintf(w, "\n## %s: %s\n\n", s.room, s.what)
		if err := measure(w, s.dir, args); err != nil {
			fmt.Fprintf(w, "\n**It failed: %v**\n", err)
			failed = append(failed, s.room+": "+s.what)
		}
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, "; "))
	}
	return nil
}

// describe writes what the figures depend on.
func describe(w io.Writer, short bool) {
	fmt.Fprintf(w, "# Measured\n\n%s, %s/%s, %d cores, %s\n", time.Now().UTC().Format("2006-01-02"),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if short {
		fmt.Fprint(w, "\nSmall inputs: this shows that everything works, and no speed.\n")
	}
	for _, of := range []struct{ file, line string }{
		{"/proc/cpuinfo", "model name"}, {"/proc/meminfo", "MemTotal"}, {"/proc/loadavg", ""},
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

// measure runs one command and writes what it prints.
func measure(w io.Writer, dir string, args []string) error {
	where := ""
	if dir != "." {
		where = "cd " + dir + " && "
	}
	fmt.Fprintf(w, "```\n%sgo %s\n\n", where, strings.Join(args, " "))
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errs
	start := time.Now()
	err := cmd.Run()
	fmt.Fprintf(w, "```\n\n%v\n", time.Since(start).Round(time.Second))
	if err != nil {
		text := errs.Bytes()
		return fmt.Errorf("%w: %s", err, text[max(0, len(text)-2000):])
	}
	return nil
}
