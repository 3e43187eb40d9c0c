//go:build linux

// Command crawl measures whole crawlers on one virtual web: CPU time and pages per second, with the
// lowest delay that each crawler allows.
//
//	go run ./crawl
//
// The web and each crawler are separate processes; the crawler has its own core. Each round runs
// every crawler, one after the other; the table shows the medians. Requests are counted in the
// web's log. The loop is what one writes in an afternoon with net/http and package page: it only follows
// links. wget, wget2 and httrack are included if they are installed, and store pages as files. colly stores
// nothing; fullcrawler stores nothing, or an archive with its index and its store of pages.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

func main() {
	var b bench
	rounds := flag.Int("rounds", 3, "`number` of rounds; the table has the medians")
	flag.IntVar(&b.hosts, "hosts", 100, "`number` of hosts")
	flag.IntVar(&b.pages, "pages", 100, "`number` of pages per host")
	flag.IntVar(&b.size, "size", 20<<10, "median size of a page in `bytes`")
	flag.DurationVar(&b.limit, "limit", 3*time.Minute, "time limit for a crawler; its results until then count")
	only := flag.String("only", "", "`crawlers` to run, separated by commas; empty means all")
	child := flag.String("child", "", "`crawler` of this process, loop or colly; for internal use")
	flag.Parse()
	var err error
	switch *child {
	case "loop":
		programs.Loop(flag.Arg(0))
	case "colly":
		err = programs.Colly(flag.Arg(0), &colly.LimitRule{DomainGlob: "*", Parallelism: 200})
	default:
		err = b.run(*rounds, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crawl:", err)
		os.Exit(1)
	}
}

// A bench is the web and its settings.
type bench struct {
	hosts, pages, size int
	limit              time.Duration
	dir                string
}

// A figure has the measurements of one run.
type figure struct {
	cpu, wall time.Duration
	memory    int64 // bytes, at most
	pages     int   // distinct pages that were served
	again     int   // requests for a page after the first one
}

func (b *bench) run(rounds int, only string) (err error) {
	if b.dir, err = os.MkdirTemp("", "crawl"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := programs.Build(b.dir); err != nil {
		return err
	}
	engines := b.engines(only)
	if len(engines) == 0 {
		return fmt.Errorf("-only %s: no such crawler is installed", only)
	}
	var all measure.Results
	for range rounds {
		for _, e := range engines {
			f, err := b.measure(e)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			all.Add(e.name, f.cpu.Seconds()*1000/float64(f.pages), float64(f.pages)/f.wall.Seconds(),
				float64(f.pages), float64(f.again), float64(f.memory)/1e6)
			fmt.Fprintf(os.Stderr, "%s: %+v\n", e.name, f)
		}
	}
	return all.Print("crawler", engines[0].name, "CPU s/1,000 pages", "pages/s", "pages", "again", "MB")
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// An engine is a crawler: its command for a web with a given first page and hosts file.
type engine struct {
	name    string
	command []string
	proxy   bool // it finds the hosts through a proxy setting
}

const first, proxy = "http://h00000.vweb.test/", "http://127.16.0.1:80"

// engines returns those of a list of names, or all if it is empty, whose programs are installed.
func (b *bench) engines(only string) []engine {
	ours := func(archive string) []string {
		return []string{b.path("fullcrawler"), "-hosts", b.path("hosts"), "-out", b.path("out"), "-delay", "0",
			"-scope", "any", "-host-pages", "0", "-depth", "-1", "-concurrency", "200", "-archive", archive,
			"-sitemaps=false", first}
	}
	self, _ := os.Executable()
	all := []engine{
		{"loop", []string{self, "-child", "loop", first}, true},
		{"fullcrawler without archive", ours("none"), false},
		{"fullcrawler with gzip", ours("gzip"), false},
		{"fullcrawler with zstd", ours("zstd"), false},
		{"colly", []string{self, "-child", "colly", first}, true},
		{"wget", []string{"wget", "-q", "-r", "-l", "inf", "-H", "--no-verbose", "-P", b.path("out"), first}, true},
		{"wget2", []string{"wget2", "-q", "-r", "-l", "0", "-H", "--max-threads=200", "-P", b.path("out"), first}, true},
		// Without -%c0 it requests at most one page a second.
		{"httrack", []string{"httrack", first, "-O", b.path("out"), "-e", "-c200", "-%c0", "-A0", "-s0", "-q",
			"-P", "127.16.0.1:80", "--disable-security-limits"}, false},
	}
	return slices.DeleteFunc(all, func(e engine) bool {
		_, err := exec.LookPath(e.command[0])
		return err != nil || only != "" && !slices.Contains(strings.Split(only, ","), e.name)
	})
}

// measure runs a crawler against its own web.
func (b *bench) measure(e engine) (f figure, err error) {
	if err := os.RemoveAll(b.path("out")); err != nil {
		return f, err
	}
	stop, err := b.serve()
	if err != nil {
		return f, err
	}
	name, args := e.command[0], e.command[1:]
	if path, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		name, args = path, append([]string{"-c", "0"}, e.command...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.dir
	cmd.WaitDelay = time.Second // for children that outlive the crawler
	if e.proxy {
		cmd.Env = append(os.Environ(), "http_proxy="+proxy)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return f, errors.Join(err, stop())
	}
	peak := watchMemory(cmd.Process.Pid)
	failed := cmd.Wait()
	f.wall = time.Since(start)
	f.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	f.memory = peak()
	if err := stop(); err != nil {
		return f, err
	}
	if err := b.count(&f); err != nil || f.pages == 0 {
		return f, fmt.Errorf("%w: %w: %s", errors.New("nothing was fetched"), errors.Join(err, failed), out.Bytes())
	}
	return f, nil // ignore failed: some crawlers exit with an error if a single page is missing
}

// serve starts the web, on the other core if there is one.
func (b *bench) serve() (stop func() error, err error) {
	args := []string{b.path("webtest"), "-port", "80", "-hosts-file", b.path("hosts"), "-log", b.path("log"),
		"-hosts", fmt.Sprint(b.hosts), "-pages", fmt.Sprint(b.pages), "-size", fmt.Sprint(b.size)}
	if path, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		args = append([]string{path, "-c", "1"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), " is at ") {
	}
	return func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		return cmd.Wait()
	}, nil
}

// count reads the web's log.
func (b *bench) count(f *figure) error {
	log, err := os.Open(b.path("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		// time, host, address, method, URL, status, user agent
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) < 6 || fields[5] != "200" || strings.HasSuffix(fields[4], "/robots.txt") {
			continue
		}
		if seen[fields[4]] {
			f.again++
		}
		seen[fields[4]] = true
	}
	f.pages = len(seen)
	return lines.Err()
}
