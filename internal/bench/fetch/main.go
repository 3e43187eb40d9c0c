// Command fetch compares package fetch with the packages that it builds on, and with its
// alternatives.
//
//	go run ./fetch get      pages over loopback: CPU and pages per second
//	go run ./fetch links    links of generated or real pages: MB per CPU second, and allocations
//	go run ./fetch memory   memory of a fetch in flight
//
// Each round runs every engine, one after the other, so that all of them see the same noise. The
// tables show the medians of the rounds, and the ratio to the reference engine.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
)

// serverArg makes the program the server for get and memory. It is a separate process, so that its
// CPU time does not count as the client's.
const serverArg = "serve"

func main() {
	rounds := flag.Int("rounds", 5, "`number` of rounds; the table has the medians")
	pages := flag.Int("pages", 20_000, "get: pages per engine and round")
	conns := flag.Int("conns", 200, "get: connections; memory: fetches in flight")
	size := flag.Int("size", 20<<10, "get, memory: bytes of a page")
	sites := flag.String("sites", "", "links: `directory` of real pages; empty means generated ones")
	every := flag.Int("every", 10, "links: use one of this many pages")
	flag.Parse()
	var err error
	switch flag.Arg(0) {
	case serverArg:
		err = serve(*size)
	case "get":
		err = get(*rounds, *pages, *conns, *size)
	case "links":
		err = links(*rounds, *sites, *every)
	case "memory":
		err = memory(*rounds, *conns, *size)
	default:
		err = fmt.Errorf("unknown measurement %q: want get, links or memory", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

// results are the figures of each engine, by round, in the order of the columns.
type results struct {
	columns   []string // the ratio is that of the first column
	reference string
	order     []string
	figures   map[string][][]float64
}

func (r *results) add(engine string, figures ...float64) {
	if r.figures == nil {
		r.figures = map[string][][]float64{}
	}
	if r.figures[engine] == nil {
		r.order = append(r.order, engine)
	}
	r.figures[engine] = append(r.figures[engine], figures)
}

// medians returns the medians of an engine's columns, and the median of the ratios to the reference
// in each round: other load in a round affects both.
func (r *results) medians(engine string) (columns []float64, ratio float64) {
	var ratios []float64
	for round, figures := range r.figures[engine] {
		ratios = append(ratios, figures[0]/r.figures[r.reference][round][0])
	}
	for c := range r.columns {
		var all []float64
		for _, figures := range r.figures[engine] {
			all = append(all, figures[c])
		}
		columns = append(columns, median(all))
	}
	return columns, median(ratios)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

func (r *results) print() error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "engine\t")
	for _, name := range r.columns {
		fmt.Fprintf(out, "%s\t", name)
	}
	fmt.Fprintf(out, "%s / %s\t\n", r.columns[0], r.reference)
	for _, engine := range r.order {
		columns, ratio := r.medians(engine)
		fmt.Fprintf(out, "%s\t", engine)
		for _, value := range columns {
			fmt.Fprintf(out, "%.4g\t", value)
		}
		fmt.Fprintf(out, "%.3f\t\n", ratio)
	}
	return out.Flush()
}
