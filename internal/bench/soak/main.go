//go:build linux

// Command soak runs fullcrawler for millions of visits and watches its resources: memory,
// goroutines, open files, CPU time. They must not grow once every page is known.
//
//	go run ./soak                       5 million visits, about twenty minutes
//	go run ./soak -visits 1e5
//
// The web is a separate process. Each page changes now and then, and is due once an hour by a clock
// that is too fast for the crawler. So some page is always due, and the crawl exercises everything:
// conditional requests, the archive, the stores and the figures of the live page.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

func main() {
	var s soak
	visits := flag.Float64("visits", 5e6, "`number` of visits to make")
	flag.IntVar(&s.hosts, "hosts", 1000, "`number` of hosts")
	flag.IntVar(&s.pages, "pages", 200, "`number` of pages per host")
	flag.DurationVar(&s.every, "every", 10*time.Second, "time between samples")
	flag.Parse()
	s.visits = *visits
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// A soak is one long crawl.
type soak struct {
	visits       float64
	hosts, pages int
	every        time.Duration
	dir          string
}

func (s *soak) path(name string) string { return filepath.Join(s.dir, name) }

func (s *soak) run() (err error) {
	if s.dir, err = os.MkdirTemp("", "soak"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := programs.Build(s.dir); err != nil {
		return err
	}
	web, err := programs.Start(s.dir, "webtest", "-hosts", fmt.Sprint(s.hosts), "-pages", fmt.Sprint(s.pages), "-port", "80",
		"-change", "10m", "-hosts-file", s.path("hosts"))
	if err != nil {
		return err
	}
	defer web.Process.Kill()
	if err := waitFor(s.path("hosts")); err != nil {
		return err
	}
	samples, err := programs.Watch(s.dir, s.every, func(now programs.Sample) bool { return now.Visits >= s.visits },
		"-concurrency", "100", "-archive", "zstd", "-forever", "-revisit", "1h", "-pace", "100", "http://h00000.vweb.test/")
	if err := errors.Join(err, report(samples)); err != nil {
		return err
	}
	check := exec.Command(s.path("fullcrawler"), "check", "-out", s.path("out"))
	check.Stdout, check.Stderr = os.Stdout, os.Stderr
	return check.Run()
}

// waitFor waits at most a minute until a file exists and is not empty.
func waitFor(name string) error {
	for range 600 {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s is missing or empty after a minute", name)
}

// report prints a line for each tenth of the visits, with the maxima of that time.
func report(samples []programs.Sample) error {
	out := measure.Columns()
	fmt.Fprint(out, "visits\tafter\tvisits/s\tCPU s/1,000\tknown\tMB\tanonymous MB\tgoroutines\tfiles\tarchive MB\t\n")
	var before, most programs.Sample
	for i, s := range samples {
		most.Resident = max(most.Resident, s.Resident)
		most.Anonymous = max(most.Anonymous, s.Anonymous)
		most.Goroutines = max(most.Goroutines, s.Goroutines)
		most.Open = max(most.Open, s.Open)
		last := len(samples) - 1
		n := s.Visits - before.Visits
		if n < samples[last].Visits/10 && i != last {
			continue
		}
		fmt.Fprintf(out, "%.0f\t%v\t%.0f\t%.3f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", s.Visits,
			s.After.Round(time.Second), n/(s.After-before.After).Seconds(), 1000*(s.CPU-before.CPU)/n, s.Known,
			most.Resident/1e6, most.Anonymous/1e6, most.Goroutines, most.Open, s.Archive/1e6)
		before, most = s, programs.Sample{}
	}
	return out.Flush()
}
