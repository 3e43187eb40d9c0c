package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A summary has the main figures of a crawl, which an operator looks at first.
type summary struct {
	state     string
	admitted  int64 // URLs that have passed dedupe
	answers   int64 // responses stored by live processes
	rate      float64
	open      int    // URLs that wait in a partition
	lag       uint64 // messages in flight
	dropped   int64  // links and pages for which there was no room; some of the pages are retried
	parts     int
	ownerless []string // partitions
	full      float64  // share of the stream's bound
	resident  uint64
}

// summary adds up the snapshot. The rate of a process is measured since last if that has the
// process, otherwise since its start.
func (l *look) summary(last look) summary {
	s := summary{state: "running", parts: len(l.parts), full: l.full}
	for i := range l.parts {
		p := &l.parts[i]
		s.open += p.Root.Open
		s.lag += p.Lag()
		if p.Owner == "" {
			s.ownerless = append(s.ownerless, p.Dest.String())
		}
	}
	counts := l.counts()
	s.admitted, s.dropped = counts["URLs admitted"], counts[string(stage.QueueFull)]
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
	case l.settings.Paused:
		s.state = "paused by the operator; continue with \"cluster resume\""
	case len(l.members) == 0 && s.open == 0 && s.lag == 0:
		s.state = "stopped: no process is alive, and nothing is left to fetch"
	case len(l.members) == 0:
		s.state = "stopped: no process is alive; start \"cluster run\""
	case len(s.ownerless) > 0:
		s.state = "partitions without an owner: " + short(s.ownerless)
	case s.open == 0 && s.lag == 0:
		s.state = "nothing is left to fetch"
	}
	return s
}

// short lists at most four names.
func short(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s … (%d)", strings.Join(names[:4], " "), len(names))
	}
	return strings.Join(names, " ")
}

func (s summary) write(out io.Writer, processes int) {
	fmt.Fprintf(out, "crawl      %s\n", s.state)
	fmt.Fprintf(out, "fetched    %d responses stored by the processes below, %.1f per second\n", s.answers, s.rate)
	fmt.Fprintf(out, "frontier   %d URLs admitted, %d waiting, %d messages in flight\n",
		s.admitted, s.open, s.lag)
	fmt.Fprintf(out, "processes  %d alive, %s resident, %d partitions\n",
		processes, mebibytes(s.resident), s.parts)
	fmt.Fprintf(out, "brokers    stream %.1f %% of its bound\n", 100*s.full)
	if s.dropped > 0 {
		fmt.Fprintf(out, "dropped    %d links and pages for lack of room: raise max_bytes of the "+
			"stream with \"nats stream edit\"; a crawl created with a larger -waiting has more\n", s.dropped)
	}
	fmt.Fprintln(out)
}

// writeProcesses writes a table of the processes: the partitions, stored responses and memory of
// each.
func writeProcesses(w io.Writer, members []crawl.Member, at time.Time) {
	fmt.Fprintln(w, "process\tpartitions\tresponses\tper second\tlive heap\tresident\tup\t")
	for _, m := range members {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%s\t%s\t%s\t\n", m.ID, m.Owned, m.Visits, m.Rate,
			mebibytes(m.Heap), mebibytes(m.Resident), at.Sub(m.Started).Round(time.Second))
	}
}
