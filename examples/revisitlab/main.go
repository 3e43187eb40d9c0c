// Command revisitlab compares revisit policies on change logs.
//
//	revisitlab [flags] LOG...
//	revisitlab -synthetic 163122
//
// Without a LOG it generates a small one, like the paper's. A LOG has a line for each change of a
// page: the page, a tab, the Unix time, and, if known, a tab and A (added), M (modified) or D
// (deleted). It may be compressed with zstd. The lab cuts the log into years, lets each policy
// visit the pages as they were at that time, and counts the versions caught: the experiment of
// Tamura and Kitsuregawa (2008), section 5. It prints tables and, with -out, writes the paper's
// Figures 4 to 9 and curves at equal cost as SVG, the numbers as CSV, and the tables of its
// README.md as tables.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/revisit"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

func main() { report.Main("revisitlab", run) }

// settings are the flags.
type settings struct {
	out        string
	resolution time.Duration
	least      int
	most       int
	synthetic  int
	modified   bool
	exact      bool
	curves     bool
	overload   bool
	policies   *regexp.Regexp // nil means all
	half       int
	choose     bool
	hosts      bool
	logs       []string
}

// defaultPages is the size of the log that the lab generates by default: it takes seconds.
const defaultPages = 200

func parse(args []string, errs io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("revisitlab", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&s.out, "out", "", "write SVG and CSV files to this directory")
	flags.DurationVar(&s.resolution, "resolution", 24*time.Hour, "merge changes that are closer together than this")
	flags.IntVar(&s.least, "least", 2, "ignore pages with fewer changes in a year")
	flags.IntVar(&s.most, "most", 0, "use at most this many pages of each log, evenly spaced; 0 means all")
	flags.IntVar(&s.synthetic, "synthetic", 0, "also make a log of so many pages like the paper's; 200 if no log is given")
	flags.BoolVar(&s.modified, "modified", false, "let servers send Last-Modified")
	flags.BoolVar(&s.exact, "exact", false, "also run the numerical estimator (slow)")
	flags.BoolVar(&s.curves, "curves", true, "sweep each policy's cost")
	only := flags.String("policies", "", "run only the policies whose names match this regular expression")
	flags.BoolVar(&s.overload, "overload", false, "also run with servers that admit fewer visits than requested")
	flags.IntVar(&s.half, "half", 0, "use only this half of the pages, 1 or 2; 0 means both")
	flags.BoolVar(&s.choose, "choose", false,
		"tune the parameters of Bayes on each half of the logs, and evaluate on the other (slow)")
	flags.BoolVar(&s.hosts, "hosts", false,
		"treat each log as a host that publishes in bulk, gives hints, and has pages of different weights")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.logs = flags.Args(); len(s.logs) == 0 && s.synthetic == 0 {
		s.synthetic = defaultPages
	}
	if *only != "" {
		if s.policies, err = regexp.Compile(*only); err != nil {
			return s, fmt.Errorf("-policies: %w", err)
		}
	}
	switch {
	case s.synthetic < 0:
		return s, errors.New("-synthetic must not be negative")
	case s.resolution < time.Second || s.resolution > 30*day:
		return s, errors.New("-resolution must lie between a second and 30 days")
	case s.half < 0 || s.half > 2:
		return s, errors.New("-half must be 1 or 2")
	case (s.choose || s.hosts) && s.half != 0:
		return s, errors.New("-choose and -hosts need both halves")
	}
	return s, report.MakeOut(s.out)
}

func run(args []string, out, errs io.Writer) error {
	s, err := parse(args, errs)
	if err != nil {
		return err
	}
	sets, err := s.read(errs)
	if err != nil || len(sets) == 0 {
		return err
	}
	if s.choose {
		return s.chooseAndEvaluate(sets, out, errs)
	}
	if s.hosts {
		return s.printHosts(sets, out, errs)
	}
	var all []outcome
	for _, set := range sets {
		pages := thin(ofHalf(set.pages, s.half), s.most)
		if len(pages) == 0 {
			fmt.Fprintf(errs, "%s: no page in half %d\n", set.name, s.half)
			continue
		}
		o, err := s.experiment(set.name, pages, out, errs)
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	if some := summaries(all); len(some) > 0 {
		p := report.NewPrinter(out)
		leadTable(p, some)
		wonTable(p, some)
		if p.Err() != nil {
			return p.Err()
		}
	}
	if s.out == "" || len(all) == 0 {
		return nil
	}
	return report.Save(s.out, map[string]func(io.Writer) error{
		"tables.md": func(w io.Writer) error { return printTables(w, all) },
	})
}

// read makes the synthetic log, if requested, and reads the others. It reports those without pages.
func (s settings) read(errs io.Writer) (sets []set, err error) {
	step := inDays(s.resolution)
	take := func(file, name string, pages []page) {
		if len(pages) == 0 {
			fmt.Fprintf(errs, "%s: no page existed for a year with %d changes in it (-least)\n", file, s.least)
			return
		}
		sets = append(sets, set{name, pages})
	}
	if s.synthetic > 0 {
		take("synthetic", "synthetic", synthesize(s.synthetic, s.least, step, 1))
	}
	for _, file := range s.logs {
		events, err := readLog(file)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		take(file, name, cut(events, step, s.least))
	}
	return sets, nil
}

// thin returns about this many pages, evenly spread.
func thin(pages []page, most int) []page {
	if most <= 0 || len(pages) <= most {
		return pages
	}
	some := make([]page, most)
	for i := range some {
		some[i] = pages[i*len(pages)/most]
	}
	return some
}

// experiment runs all policies over the pages and reports.
func (s settings) experiment(
	name string, pages []page, out, errs io.Writer,
) (o outcome, err error) {
	l := lab{step: inDays(s.resolution), modified: s.modified}
	policies := paperPolicies()
	if s.exact {
		policies = append(policies, exact(revisit.MLE{}))
	}
	if s.policies != nil {
		policies = slices.DeleteFunc(policies, func(p strategy) bool {
			return !s.policies.MatchString(p.name)
		})
		if len(policies) == 0 {
			return o, fmt.Errorf("no policy's name matches %s", s.policies)
		}
	}
	r := result{name: name, pages: pages}
	for _, p := range policies {
		r.names = append(r.names, p.name)
	}
	r.scores = l.simulateAll(pages, policies, report.Progress(errs, name+": policies"))
	if s.curves {
		r.curves = l.curves(pages, families(), report.Progress(errs, name+": curves"))
		leads := r.summarize()
		o.summary = &leads
	}
	o.name, o.claims = name, r.claims()
	if err := r.print(out); err != nil {
		return o, err
	}
	if s.overload {
		p := report.NewPrinter(out)
		o.crowds = r.printOverload(p, l)
		if p.Err() != nil {
			return o, p.Err()
		}
	}
	if s.out == "" {
		return o, nil
	}
	return o, r.save(filepath.Join(s.out, name))
}
