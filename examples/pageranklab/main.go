// Command pageranklab compares crawl strategies on web graphs.
//
//	pageranklab [flags] GRAPH...
//	pageranklab -generate 1000000
//
// Without a GRAPH it generates a small one. A GRAPH is a list of links, two page numbers or two
// URLs to a line, or LAW's ASCII form: the number of pages, then a line of successors for each. It
// may be compressed by gzip or zstd. A list of pages beside it (id, optionally 1 or 0 for fetched
// or not, and URL) gives hosts and ties. The lab crawls what a seed reaches with each strategy: the
// experiment of Yamada et al. (2004), section 4. It prints tables. With -out it writes their
// Figures 4 to 10 as SVG and the numbers as CSV.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

func main() { report.Main("pageranklab", run) }

// settings are the flags.
type settings struct {
	out      string
	pages    string
	seeds    string
	crawls   int
	generate int
	sites    int
	variant  uint64
	rounds   int
	push     []float64 // more thresholds to try
	workers  int
	graphs   []string
}

// defaultPages is the size of the graph that the lab generates by default: it takes seconds.
const defaultPages = 20_000

func parse(args []string, errs io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("pageranklab", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&s.out, "out", "", "write SVG and CSV files to this directory")
	flags.StringVar(&s.pages, "pages", "", "list of pages, for one graph; by default the file beside it")
	flags.StringVar(&s.seeds, "seeds", "", "start one crawl from these ids or URLs, separated by commas")
	flags.IntVar(&s.crawls, "crawls", 4, "number of crawls, from the seeds that reach the most pages")
	flags.IntVar(&s.generate, "generate", 0, "also generate a graph of this many pages; 20000 if no graph is given")
	flags.IntVar(&s.sites, "sites", 0, "also generate a graph of this many pages on large sites with many links")
	flags.Uint64Var(&s.variant, "variant", 1, "seed of the generated graph")
	flags.IntVar(&s.rounds, "rounds", 5, "rounds of speed measurements; 0 means none")
	flags.IntVar(&s.workers, "workers", runtime.GOMAXPROCS(0), "number of strategies that run concurrently")
	flags.Func("push", "also try Push with these thresholds, separated by commas", func(text string) error {
		for _, part := range strings.Split(text, ",") {
			v, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return err
			}
			s.push = append(s.push, v)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.graphs = flags.Args(); len(s.graphs) == 0 && s.generate == 0 && s.sites == 0 {
		s.generate = defaultPages
	}
	switch {
	case s.generate < 0 || s.sites < 0:
		return s, errors.New("-generate and -sites must not be negative")
	case s.crawls < 1 || s.workers < 1:
		return s, errors.New("-crawls and -workers must be at least 1")
	case s.pages != "" && len(s.graphs) != 1:
		return s, errors.New("-pages needs exactly one graph")
	case s.generate > maxID || s.sites > maxID:
		return s, fmt.Errorf("-generate and -sites: at most %d", maxID)
	}
	return s, report.MakeOut(s.out)
}

func run(args []string, out, errs io.Writer) error {
	s, err := parse(args, errs)
	if err != nil {
		return err
	}
	if s.generate > 0 {
		if err := s.experiment(generate(s.generate, s.variant), out, errs); err != nil {
			return err
		}
	}
	if s.sites > 0 {
		if err := s.experiment(sites(s.sites, s.variant), out, errs); err != nil {
			return err
		}
	}
	for _, name := range s.graphs {
		w, err := readWeb(name, s.pages)
		if err != nil {
			return err
		}
		if err := s.experiment(w, out, errs); err != nil {
			return err
		}
	}
	return nil
}

// experiment crawls with all strategies and reports.
func (s settings) experiment(w *web, out, errs io.Writer) error {
	r := &result{web: w, push: s.push}
	if s.seeds != "" {
		ids, err := w.find(strings.Split(s.seeds, ","))
		if err != nil {
			return err
		}
		r.starts = []start{w.start(ids)}
	} else {
		r.starts = w.starts(s.crawls)
	}
	if len(r.starts) == 0 {
		return fmt.Errorf("%s: no page to start from has links", w.name)
	}
	tell := report.Progress(errs, w.name+": PageRank")
	for i := range r.starts {
		r.starts[i].truth = newTruth(r.starts[i].graph, s.workers)
		tell(float64(i+1) / float64(len(r.starts)))
	}
	r.crawlAll(s.workers, report.Progress(errs, w.name+": crawls"))
	r.bound = checkBound(r.starts[0], s.workers)
	r.gained, r.followed = r.harvests()
	if s.rounds > 0 {
		r.paces = paces(r.starts[0], s.rounds, report.Progress(errs, w.name+": speed"))
		r.growth = growth(r.starts[0], s.rounds)
	}
	if err := r.print(out); err != nil || s.out == "" {
		return err
	}
	return r.save(filepath.Join(s.out, w.name))
}
