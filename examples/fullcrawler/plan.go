package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A hostPlan is what a crawl would ask of a host.
type hostPlan struct {
	host       string
	known, due int
	perDay     float64 // visits that known pages ask for
}

// dryRun prints what a crawl would do, from what is on record. It fetches nothing.
func dryRun(cfg config, out io.Writer) error {
	plans := map[string]*hostPlan{}
	of := func(url string) *hostPlan {
		host := weburl.Host(url)
		if plans[host] == nil {
			plans[host] = &hostPlan{host: host}
		}
		return plans[host]
	}
	fresh := 0
	for _, seed := range cfg.seeds {
		of(seed)
	}
	if _, err := os.Stat(filepath.Join(cfg.out, beganName)); err == nil && !cfg.fresh {
		err := withPages(cfg.out, func(p *stage.Pages, c stage.Clock) error {
			for known, err := range p.All() {
				if err != nil {
					return err
				}
				plan := of(known.Item.URL)
				plan.known++
				if known.State.Due <= c.Now().Unix() {
					plan.due++
				}
				if !known.State.Visited() {
					fresh++
				}
				if known.State.Booked > 0 {
					plan.perDay += float64(24*time.Hour) / float64(seconds(known.State.Booked)) * c.Pace
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	printPlan(out, cfg, plans, fresh)
	return nil
}

// printPlan writes the hosts that take the longest first.
func printPlan(out io.Writer, cfg config, plans map[string]*hostPlan, fresh int) {
	all := make([]*hostPlan, 0, len(plans))
	var known, due int
	for _, p := range plans {
		all = append(all, p)
		known, due = known+p.known, due+p.due
	}
	slices.SortFunc(all, func(a, b *hostPlan) int {
		return cmp.Or(b.due-a.due, cmp.Compare(a.host, b.host))
	})
	delay := max(cfg.delay, 0)
	fmt.Fprintf(out, "%d hosts, %d pages known, %d never visited, %d due now\n", len(all), known, fresh, due)
	fmt.Fprintf(out, "%v between two requests to a host, or its Crawl-delay: at most %.0f a day and host\n",
		delay, float64(24*time.Hour)/float64(max(delay, time.Millisecond)))
	if len(all) > 0 {
		fmt.Fprintf(out, "what is due takes at least %v; pages yet to be found come on top\n",
			(time.Duration(all[0].due) * delay).Round(time.Second))
	}
	const most = 20
	fmt.Fprintf(out, "\n%8s %8s %14s  %s\n", "due", "known", "visits a day", "host")
	for _, p := range all[:min(len(all), most)] {
		fmt.Fprintf(out, "%8d %8d %14.1f  %s\n", p.due, p.known, p.perDay, p.host)
	}
	if len(all) > most {
		fmt.Fprintf(out, "%33s %d more\n", "", len(all)-most)
	}
}
