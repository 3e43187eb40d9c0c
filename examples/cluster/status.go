package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// wait waits until a crawl has nothing left to fetch.
func wait(fs *flag.FlagSet) action {
	at := brokerFlags(fs)
	every := fs.Duration("every", 2*time.Second, "polling `interval`")
	return func(ctx context.Context, _ []string, _, log io.Writer) error {
		return withBrokers(ctx, at, log, func(ctx context.Context, bus *jet.Bus) error {
			c, err := opened(ctx, bus, log)
			if err == nil {
				err = c.Wait(ctx, *every)
			}
			return err
		})
	}
}

// status shows the progress of a crawl.
func status(fs *flag.FlagSet) action {
	at := brokerFlags(fs)
	every := fs.Duration("every", 0, "refresh at this `interval`, with rates; 0: show it once")
	whole := fs.Bool("partitions", false, "also show each partition")
	listen := fs.String("listen", "", "serve the status and /metrics at this `address` instead")
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error {
			if *listen != "" {
				return serveStatus(ctx, *listen, c, out)
			}
			return showStatus(ctx, c, *every, *whole, out)
		})
	}
}

// showStatus shows the progress of a crawl, once or repeatedly until ctx ends.
func showStatus(
	ctx context.Context, c *crawl.Crawl, every time.Duration, whole bool, out io.Writer,
) error {
	var last look
	for {
		now, err := lookAt(ctx, c)
		if err != nil {
			return err
		}
		now.show(out, last, whole)
		if every == 0 {
			return nil
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// A look is a snapshot of a crawl.
type look struct {
	at       time.Time
	parts    []crawl.Part
	full     float64 // share of the stream's bound
	members  []crawl.Member
	settings crawl.Settings
}

// lookAt takes a snapshot of a crawl.
func lookAt(ctx context.Context, c *crawl.Crawl) (now look, err error) {
	now.at = time.Now()
	if now.parts, now.members, now.full, err = c.Look(ctx); err == nil {
		now.settings, _, err = c.Settings(ctx)
	}
	return now, err
}

// counts adds up the counts of all partitions.
func (l *look) counts() map[string]int64 {
	counts := map[string]int64{}
	for _, p := range l.parts {
		for what, n := range p.Root.Counts {
			counts[what] += n
		}
	}
	return counts
}

// show writes a summary of the crawl, its processes, the outcomes of URLs and, if whole, each
// partition. Rates are measured since last.
func (l *look) show(out io.Writer, last look, whole bool) {
	l.summary(last).write(out, len(l.members))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	writeProcesses(w, l.members, l.at)
	w.Flush()
	fmt.Fprintln(out)
	counts := l.counts()
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%10d  %s\n", counts[what], what)
	}
	if whole {
		fmt.Fprintln(out)
		l.showParts(out)
	}
}

// showParts writes a table of the partitions.
func (l *look) showParts(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "partition\tepoch\tlag\twaiting\t  owner\t")
	for _, p := range l.parts {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t  %s\t\n", p.Dest, p.Epoch, p.Lag(), p.Root.Open, p.Owner)
	}
	w.Flush()
}

// mebibytes formats an amount of memory; 0 means unknown.
func mebibytes(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
