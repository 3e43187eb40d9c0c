package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// A result is everything known about one log.
type result struct {
	name   string
	pages  []page
	names  []string
	scores []score // of the policies named
	curves []curve // of families
}

// print writes the tables.
func (r *result) print(w io.Writer) error {
	versions := 0
	for i := range r.pages {
		versions += len(r.pages[i].changes)
	}
	out := report.NewPrinter(w)
	out.Printf("\n# %s: %d pages and years, %.1f versions each\n\n", r.name, len(r.pages),
		float64(versions)/float64(len(r.pages)))
	r.printPolicies(out)
	if len(r.curves) > 0 {
		r.printAllCurves(out)
	}
	r.printClaims(out)
	return out.Err()
}

func (r *result) printAllCurves(out *report.Printer) {
	r.printCurves(out, "share of all versions caught, at equal visits (minus that of "+
		r.curves[ofMLE].name+")", (*sums).micro)
	r.printCurves(out, "mean over pages of the share caught, at equal visits (minus that of "+
		r.curves[ofMLE].name+")", (*sums).macro)
}

func (r *result) printPolicies(out *report.Printer) {
	out.Table(func(row func(string, ...any)) {
		row("policy\tvisits\tcoverage\t95 %%\tefficiency\tall versions\tversions/visit")
		for i, name := range r.names {
			s := &r.scores[i]
			row("%s\t%.1f\t%.3f\t±%.3f\t%.3f\t%.3f\t%.3f", name, s.perPage(), s.macro(), s.margin(),
				s.useful(), s.micro(), float64(s.captured)/float64(max(s.visits, 1)))
		}
	})
	out.Printf("\n")
}

// costs returns the visits per page at which curves are compared: those of the baseline's points.
func (r *result) costs() (visits []float64) {
	for i := range r.curves[ofMLE].points {
		visits = append(visits, r.curves[ofMLE].points[i].perPage())
	}
	return visits
}

func (r *result) printCurves(out *report.Printer, title string, of func(*sums) float64) {
	base, costs := r.curves[ofMLE], r.costs()
	out.Printf("%s\n", title)
	out.Table(func(row func(string, ...any)) {
		head := "visits"
		for _, v := range costs {
			head += fmt.Sprintf("\t%.1f", v)
		}
		row("%s", head)
		for _, c := range r.curves {
			text := c.name
			for _, v := range costs {
				text += "\t" + cell(c.at(v, of), base.at(v, of))
			}
			row("%s", text)
		}
		for _, own := range []curve{r.curves[ofBayes], r.curves[ofPool]} {
			text := "gap to the oracle closed by " + own.name
			for _, v := range costs {
				text += "\t" + share(gapClosed(own, base, r.curves[ofOracle], v, of))
			}
			row("%s", text)
		}
	})
	out.Printf("\n")
}

func cell(v, base float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.3f (%+.3f)", v, v-base)
}

// share formats a number that may not be known.
func share(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func (r *result) printClaims(out *report.Printer) {
	all := r.claims()
	if len(all) == 0 {
		return
	}
	out.Table(func(row func(string, ...any)) {
		row("the paper's claim\there\tseen")
		for _, c := range all {
			if c.void {
				c.seen = "-"
			}
			row("%s\t%s\t%s", c.text, c.verdict(), c.seen)
		}
	})
}

// claims checks the paper's claims; there are none if policies that they compare were not run.
func (r *result) claims() []claim {
	byName := map[string]*score{}
	for i, name := range r.names {
		byName[name] = &r.scores[i]
	}
	if slices.ContainsFunc(paperPolicies(), func(p strategy) bool { return byName[p.name] == nil }) {
		return nil
	}
	return claims(byName)
}

func (r *result) policiesCSV(w io.Writer) error {
	rows := [][]string{csvHead("policy")}
	for i, name := range r.names {
		rows = append(rows, csvRow(name, &r.scores[i].sums))
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func (r *result) curvesCSV(w io.Writer) error {
	rows := [][]string{csvHead("family")}
	for _, c := range r.curves {
		for i := range c.points {
			rows = append(rows, csvRow(c.name, &c.points[i].sums))
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func csvHead(first string) []string {
	return []string{
		first, "pages", "versions", "visits", "captured", "coverage", "efficiency", "margin95",
	}
}

func csvRow(name string, s *sums) []string {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	return []string{
		name, strconv.Itoa(s.pages), strconv.Itoa(s.versions), strconv.Itoa(s.visits),
		strconv.Itoa(s.captured), float(s.macro()), float(s.useful()), float(s.margin()),
	}
}
