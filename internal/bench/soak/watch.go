//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// listen is the address of the crawler's metrics.
const listen = "127.0.0.1:18099"

// A look is a sample of the crawler's resources.
type look struct {
	at         time.Duration
	visits     float64
	known      float64 // pages
	cpu        float64 // seconds
	resident   float64 // MB in memory, of it
	anonymous  float64 // MB of memory without a file
	goroutines float64
	files      float64 // open files
	archive    float64 // MB written
}

// watch samples until there were enough visits.
func (s *soak) watch(pid int) (looks []look, err error) {
	begun := time.Now()
	for failures := 0; ; time.Sleep(s.every) {
		l, err := lookAt(pid)
		if err != nil {
			if failures++; failures > 6 {
				return looks, err
			}
			continue
		}
		failures = 0
		l.at = time.Since(begun)
		looks = append(looks, l)
		fmt.Fprintf(os.Stderr, "%v: %.0f visits, %.0f MB, %.0f goroutines, %.0f files\n",
			l.at.Round(time.Second), l.visits, l.resident, l.goroutines, l.files)
		if l.visits >= s.visits {
			return looks, nil
		}
	}
}

func lookAt(pid int) (l look, err error) {
	resp, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		return l, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ') // names of fates have blanks, too
		name := line[:max(end, 0)]
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			continue // a comment
		}
		switch {
		case strings.HasPrefix(name, "spinneret_visits_total"):
			l.visits += value
		case name == "spinneret_pages_known":
			l.known = value
		case name == "spinneret_goroutines":
			l.goroutines = value
		case name == "spinneret_archive_bytes_total":
			l.archive = value / 1e6
		}
	}
	proc := filepath.Join("/proc", fmt.Sprint(pid))
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return l, err
	}
	l.files = float64(len(files))
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return l, err
	}
	for line := range bytes.Lines(status) {
		fields := strings.Fields(string(line))
		switch fields[0] {
		case "VmRSS:":
			l.resident = megabytes(fields[1])
		case "RssAnon:":
			l.anonymous = megabytes(fields[1])
		}
	}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return l, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	const user, system, ticks = 12, 13, 100 // per second, everywhere on Linux
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return l, err
		}
		l.cpu += n / ticks
	}
	return l, nil
}

func megabytes(kilobytes string) float64 {
	n, _ := strconv.ParseFloat(kilobytes, 64) // the kernel wrote it
	return n * 1024 / 1e6
}

// report prints a line for each tenth of the visits, with maxima.
func report(w io.Writer, looks []look) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "visits\tafter\tvisits/s\tCPU s/1,000\tknown\tMB\tanonymous MB\tgoroutines\tfiles\tarchive MB\t\n")
	if len(looks) == 0 {
		return
	}
	total := looks[len(looks)-1].visits
	before, most := looks[0], look{}
	for _, l := range looks {
		most.resident = max(most.resident, l.resident)
		most.anonymous = max(most.anonymous, l.anonymous)
		most.goroutines = max(most.goroutines, l.goroutines)
		most.files = max(most.files, l.files)
		if l.visits-before.visits < total/10 && l != looks[len(looks)-1] {
			continue
		}
		n := l.visits - before.visits
		fmt.Fprintf(out, "%.0f\t%v\t%.0f\t%.3f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", l.visits,
			l.at.Round(time.Second), n/(l.at-before.at).Seconds(), 1000*(l.cpu-before.cpu)/n, l.known,
			most.resident, most.anonymous, most.goroutines, most.files, l.archive)
		before, most = l, look{}
	}
	out.Flush()
}
