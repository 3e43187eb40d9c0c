package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A summary is a crawl in a few figures: what an operator looks at first.
type summary struct {
	state     string
	admitted  int64 // URLs that have passed dedupe
	answers   int64 // that were kept, of all processes that are alive
	rate      float64
	open      int    // URLs that wait in a partition
	lag       uint64 // messages that are on the way
	lost      int64  // messages that the brokers have lost
	metFull   int64  // links and pages for which there was no room
	parts     int
	ownerless []string // partitions
	full      float64  // the largest share of a stream's bound
	resident  uint64
}

// summary adds up what was seen. The rate is that since last, or of the processes' whole life.
func (l *look) summary(last look) summary {
	s := summary{state: "running", parts: len(l.parts)}
	for i := range l.parts {
		p := &l.parts[i]
		s.open += p.Root.Open
		s.lag += p.Lag()
		s.full = max(s.full, p.Level.Share)
		if p.Owner == "" {
			s.ownerless = append(s.ownerless, partName(*p))
		}
	}
	counts := l.counts()
	s.admitted, s.lost = counts["URLs admitted"], counts["messages lost by the broker"]
	s.metFull = metFull(counts)
	before := map[string]int64{}
	for _, m := range last.members {
		before[m.ID] = m.Visits
	}
	for _, m := range l.members {
		s.answers += m.Visits
		s.resident += m.Resident
		if old, known := before[m.ID]; known {
			s.rate += float64(m.Visits-old) / l.at.Sub(last.at).Seconds()
		} else {
			s.rate += m.Rate
		}
	}
	switch {
	case l.word.Paused:
		s.state = "paused by the operator; \"cluster resume\" goes on"
	case len(l.members) == 0:
		s.state = "stands still: no process is alive; start \"cluster run\""
	case len(s.ownerless) > 0:
		s.state = "partitions without an owner: " + short(s.ownerless)
	case s.open == 0 && s.lag == 0:
		s.state = "nothing is left to fetch"
	}
	return s
}

// short names a few of many.
func short(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s … (%d)", strings.Join(names[:4], " "), len(names))
	}
	return strings.Join(names, " ")
}

func (s summary) write(out io.Writer, processes int) {
	fmt.Fprintf(out, "crawl      %s\n", s.state)
	fmt.Fprintf(out, "fetched    %d answers kept, %.1f per second\n", s.answers, s.rate)
	fmt.Fprintf(out, "frontier   %d URLs admitted, %d waiting, %d messages on the way\n",
		s.admitted, s.open, s.lag)
	fmt.Fprintf(out, "processes  %d alive, %s resident, %d partitions\n",
		processes, mebibytes(s.resident), s.parts)
	fmt.Fprintf(out, "brokers    fullest stream %.1f %% of its bound, %d messages lost\n",
		100*s.full, s.lost)
	if s.metFull > 0 {
		fmt.Fprintf(out, "dropped    %d links and pages found no room: raise the bound with \"cluster create "+
			"-apply -stream-bytes N\", or -waiting\n", s.metFull)
	}
	fmt.Fprintln(out)
}

// metFull counts links that were dropped because a stream was full, and pages that could not wait
// because memory was, of which some are tried again.
func metFull(counts map[string]int64) int64 {
	return counts[string(stage.QueueFull)]
}

// writeProcesses writes a table of the processes: what each owns of each module and how much work
// that is, and what it has done.
func writeProcesses(w io.Writer, members []crawl.Member, at time.Time) {
	fmt.Fprint(w, "process\t")
	for _, m := range message.Partitioned() {
		fmt.Fprintf(w, "%s\tload\t", m)
	}
	fmt.Fprintln(w, "answers\tper second\tlive heap\tresident\tup\t")
	for _, m := range members {
		fmt.Fprintf(w, "%s\t", m.ID)
		for _, module := range message.Partitioned() {
			fmt.Fprintf(w, "%d\t%.2f\t", m.Work[module].Parts, m.Work[module].Load)
		}
		fmt.Fprintf(w, "%d\t%.1f\t%s\t%s\t%s\t\n", m.Visits, m.Rate,
			mebibytes(m.Heap), mebibytes(m.Resident), at.Sub(m.Started).Round(time.Second))
	}
}
