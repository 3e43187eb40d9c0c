package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// A result has everything about one graph.
type result struct {
	web     *web
	push    []float64 // further thresholds of Push
	starts  []start
	names   []string // names of contenders, in order
	scores  map[string]*score
	updates map[string]float64 // score updates per page; 0 if unknown
	bytes   map[string]float64 // memory per page; 0 if unknown
	paces   []pace
	growth  [10]float64
	bound   bound

	gained   []harvest
	followed float64 // share of good pages' links that lead to good pages
}

// print writes the tables.
func (r *result) print(w io.Writer) error {
	out := report.NewPrinter(w)
	first := r.starts[0].graph
	out.Printf("\n# %s: %d pages, %d links; %d crawls, the first of %d pages and %d links\n\n",
		r.web.name, r.web.graph.Len(), r.web.graph.Size(), len(r.starts), first.Len(), first.Size())
	out.Printf("areas under the curves of A and B, and the order error C (less is better)\n")
	out.Table(func(row func(string, ...any)) {
		row("strategy\tA 0.1 %%\tA 1 %%\tA 10 %%\tB\tC\tA+B-C\tupdates/page\tbytes/page")
		for _, name := range r.names {
			s := r.scores[name]
			row("%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%s\t%s", name, s.top[0], s.top[1], s.top[2],
				s.sum, s.error, s.all(), known("%.1f", r.updates[name]), known("%.1f", r.bytes[name]))
		}
	})
	r.printHarvests(out)
	r.printSpeed(out)
	for _, part := range []struct {
		head   string
		claims []claim
	}{{"the paper's claim", r.paperClaims()}, {"our claim", r.ownClaims()}} {
		out.Printf("\n")
		out.Table(func(row func(string, ...any)) {
			row("%s\there\tseen", part.head)
			for _, c := range part.claims {
				row("%s\t%s\t%s", c.text, c.verdict(), c.seen)
			}
		})
	}
	return out.Err()
}

func (r *result) printHarvests(out *report.Printer) {
	out.Printf("\na tenth of the pages are good; %.0f %% of their links lead to good pages\n", 100*r.followed)
	out.Table(func(row func(string, ...any)) {
		row("fetched in the first tenth of the crawl\tof good pages\tof their PageRank")
		for _, h := range r.gained {
			row("%s\t%.3f\t%.3f", h.name, h.pages, h.rank)
		}
	})
}

func (r *result) printSpeed(out *report.Printer) {
	if len(r.paces) == 0 {
		return
	}
	out.Printf("\none core, links given as dense ids (Fig. 10)\n")
	out.Table(func(row func(string, ...any)) {
		row("strategy\tpages/s\tscoring alone\tbytes/page, heap")
		for _, p := range r.paces {
			row("%s\t%.3g\t%.3g\t%.1f", p.name, p.pages, p.scoring, p.bytes)
		}
	})
}

// known formats a number, where 0 means unknown.
func known(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// save writes figures and numbers into a directory.
func (r *result) save(dir string) error {
	files := r.figures()
	files["scores.csv"] = r.scoresCSV
	files["curves.csv"] = r.curvesCSV
	files["speed.csv"] = r.speedCSV
	return report.Save(dir, files)
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func (r *result) scoresCSV(w io.Writer) error {
	rows := [][]string{{"strategy", "A0.1", "A1", "A10", "B", "C", "updates", "bytes"}}
	for _, name := range r.names {
		s := r.scores[name]
		rows = append(rows, []string{
			name, float(s.top[0]), float(s.top[1]), float(s.top[2]), float(s.sum), float(s.error),
			float(r.updates[name]), float(r.bytes[name]),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func (r *result) curvesCSV(w io.Writer) error {
	rows := [][]string{{"strategy", "crawled", "A0.1", "A1", "A10", "B"}}
	for _, name := range r.names {
		c := &r.scores[name].curves
		for p := range curvePoints {
			rows = append(rows, []string{
				name, float(crawled(p)), float(c[0][p]), float(c[1][p]), float(c[2][p]), float(c[3][p]),
			})
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func (r *result) speedCSV(w io.Writer) error {
	rows := [][]string{{"strategy", "pages_per_second", "scoring_per_second", "bytes_per_page"}}
	for _, p := range r.paces {
		rows = append(rows, []string{p.name, float(p.pages), float(p.scoring), float(p.bytes)})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
