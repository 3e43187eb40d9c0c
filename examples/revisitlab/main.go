// Command revisitlab tries revisit policies on change logs.
//
//	revisitlab [flags] LOG...
//	revisitlab -synthetic 163122
//
// A LOG has a line for each change of a page: the page, a tab, the Unix time, and, if known, a tab
// and A (added), M (modified) or D (deleted). It may be compressed with zstd. The lab cuts the log
// into years, lets each policy visit the pages as if it were then, and counts the versions caught:
// the experiment of Tamura and Kitsuregawa (2008), section 5. It prints tables and, with -out,
// writes the paper's Figures 4 to 9 and curves at equal cost as SVG, and the numbers as CSV.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/revisit"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "revisitlab:", err)
		os.Exit(1)
	}
}

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
	logs       []string
}

func parse(args []string, errs io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("revisitlab", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&s.out, "out", "", "write SVG and CSV files below this folder")
	flags.DurationVar(&s.resolution, "resolution", 24*time.Hour, "changes closer than this count once")
	flags.IntVar(&s.least, "least", 2, "leave out pages with fewer changes in a year")
	flags.IntVar(&s.most, "most", 0, "take only so many pages of each log, evenly; 0 means all")
	flags.IntVar(&s.synthetic, "synthetic", 0, "also make a log of so many pages like the paper's")
	flags.BoolVar(&s.modified, "modified", false, "servers say when a page was modified")
	flags.BoolVar(&s.exact, "exact", false, "also run the numerical estimator (slow)")
	flags.BoolVar(&s.curves, "curves", true, "sweep each policy's cost")
	only := flags.String("policies", "", "run only the policies whose names match this expression")
	flags.BoolVar(&s.overload, "overload", false, "also let servers admit less than is asked for")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.logs = flags.Args()
	if *only != "" {
		if s.policies, err = regexp.Compile(*only); err != nil {
			return s, fmt.Errorf("-policies: %w", err)
		}
	}
	switch {
	case len(s.logs) == 0 && s.synthetic <= 0:
		return s, errors.New("no change log given; see -help")
	case s.resolution < time.Second || s.resolution > 30*day:
		return s, errors.New("-resolution must lie between a second and 30 days")
	}
	return s, nil
}

func run(args []string, out, errs io.Writer) error {
	s, err := parse(args, errs)
	if err != nil {
		return err
	}
	step := inDays(s.resolution)
	var all []summary
	if s.synthetic > 0 {
		pages := synthesize(s.synthetic, s.least, step, 1)
		if err := s.experiment("synthetic", pages, &all, out, errs); err != nil {
			return err
		}
	}
	for _, name := range s.logs {
		events, err := readLog(name)
		if err != nil {
			return err
		}
		short, _, _ := strings.Cut(filepath.Base(name), ".")
		pages := thin(cut(events, step, s.least), s.most)
		if len(pages) == 0 {
			fmt.Fprintf(errs, "%s: no page lived a whole year with %d changes\n", name, s.least)
			continue
		}
		if err := s.experiment(short, pages, &all, out, errs); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	p := report.NewPrinter(out)
	printSummaries(p, all)
	return p.Err()
}

// thin takes about so many pages, evenly.
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

// experiment runs all policies over the pages and reports. It adds to all what the curves say.
func (s settings) experiment(
	name string, pages []page, all *[]summary, out, errs io.Writer,
) error {
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
			return fmt.Errorf("no policy's name matches %s", s.policies)
		}
	}
	r := result{name: name, pages: pages}
	for _, p := range policies {
		r.names = append(r.names, p.name)
	}
	r.scores = l.simulateAll(pages, policies, progress(errs, name+": policies"))
	if s.curves {
		r.curves = l.curves(pages, families(), progress(errs, name+": curves"))
		*all = append(*all, r.summarize())
	}
	if err := r.print(out); err != nil {
		return err
	}
	if s.overload {
		p := report.NewPrinter(out)
		r.printOverload(p, l)
		if p.Err() != nil {
			return p.Err()
		}
	}
	if s.out == "" {
		return nil
	}
	return r.save(filepath.Join(s.out, name))
}

// progress returns a function that shows the share done on one line of a terminal.
func progress(w io.Writer, what string) func(share float64) {
	f, ok := w.(*os.File)
	if !ok {
		return func(float64) {}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(float64) {}
	}
	const width = 40
	return func(share float64) {
		done := int(math.Round(share * width))
		bar := strings.Repeat("=", done) + strings.Repeat(" ", width-done)
		fmt.Fprintf(f, "\r%s [%s] %3.0f %%", what, bar, share*100)
		if share >= 1 {
			fmt.Fprintln(f)
		}
	}
}
