//go:build linux

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

// listen is the address of the crawler's metrics.
const listen = "127.0.0.1:18099"

// A look is a sample of the crawler's resources, with its time.
type look struct {
	programs.Sample
	at time.Duration
}

// watch takes samples until the crawler has made enough visits.
func (s *soak) watch(pid int) (looks []look, err error) {
	begun := time.Now()
	for failures := 0; ; time.Sleep(s.every) {
		sample, err := programs.TakeSample(listen, pid)
		if err != nil {
			if failures++; failures > 6 {
				return looks, err
			}
			continue
		}
		failures = 0
		l := look{sample, time.Since(begun)}
		looks = append(looks, l)
		fmt.Fprintf(os.Stderr, "%v: %.0f visits, %.0f MB, %.0f goroutines, %.0f files\n",
			l.at.Round(time.Second), l.Visits, l.Resident/1e6, l.Goroutines, l.Open)
		if l.Visits >= s.visits {
			return looks, nil
		}
	}
}

// report prints a line for each tenth of the visits, with the maxima of that time.
func report(looks []look) {
	out := measure.Columns()
	fmt.Fprint(out, "visits\tafter\tvisits/s\tCPU s/1,000\tknown\tMB\tanonymous MB\tgoroutines\tfiles\tarchive MB\t\n")
	defer out.Flush()
	if len(looks) == 0 {
		return
	}
	total := looks[len(looks)-1].Visits
	before, most := looks[0], look{}
	for _, l := range looks {
		most.Resident = max(most.Resident, l.Resident)
		most.Anonymous = max(most.Anonymous, l.Anonymous)
		most.Goroutines = max(most.Goroutines, l.Goroutines)
		most.Open = max(most.Open, l.Open)
		if l.Visits-before.Visits < total/10 && l != looks[len(looks)-1] {
			continue
		}
		n := l.Visits - before.Visits
		fmt.Fprintf(out, "%.0f\t%v\t%.0f\t%.3f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", l.Visits,
			l.at.Round(time.Second), n/(l.at-before.at).Seconds(), 1000*(l.CPU-before.CPU)/n, l.Known,
			most.Resident/1e6, most.Anonymous/1e6, most.Goroutines, most.Open, l.Archive/1e6)
		before, most = l, look{}
	}
}
