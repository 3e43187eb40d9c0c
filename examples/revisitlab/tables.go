package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// An outcome is the part of a log's results that the tables over all logs need.
type outcome struct {
	name    string
	summary *summary // nil without curves
	claims  []claim  // none if policies were not run
	crowds  []crowding
}

// A crowding is the result of the orders when servers admit a share of the demand: ratios of
// versions caught.
type crowding struct {
	own         float64 // our order to our first come
	paper       float64 // the same to MLE.mix, first come
	oracle      float64 // of the rate oracle to our first come
	theory      float64 // of the best order to first come if rates are known and steady
	unused      float64 // share of visits that our first come does not use
	unusedPaper float64 // the same for MLE.mix, first come
}

// summaries returns the existing ones.
func summaries(all []outcome) (some []summary) {
	for i := range all {
		if all[i].summary != nil {
			some = append(some, *all[i].summary)
		}
	}
	return some
}

// printTables writes the tables of the lab's README.md, so that no number is copied by hand.
func printTables(w io.Writer, all []outcome) error {
	out := report.NewPrinter(w)
	if some := summaries(all); len(some) > 0 {
		leadTable(out, some)
		wonTable(out, some)
	}
	claimTable(out, all)
	crowdTable(out, all)
	return out.Err()
}

// markdown writes one table.
func markdown(out *report.Printer, head []string, rows [][]string) {
	out.Printf("| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		out.Printf("| %s |\n", strings.Join(r, " | "))
	}
	out.Printf("\n")
}

// leadTable prints the versions caught by Bayes minus those of MLE.mix(0.1-10) at equal visits, at
// summaryAlphas.
func leadTable(out *report.Printer, all []summary) {
	var rows [][]string
	for i := range all {
		s := &all[i]
		var visits, leads, means []string
		for _, c := range s.costs {
			visits = append(visits, fmt.Sprintf("%.3g", c.visits))
			means = append(means, signed(c.mean))
			if math.IsNaN(c.lead) {
				leads = append(leads, "-") // beyond the curve of Bayes
				continue
			}
			leads = append(leads, signed(c.lead)+"±"+fmt.Sprintf("%.3f", c.margin))
		}
		rows = append(rows, []string{
			s.name, strings.Join(visits, " "), strings.Join(leads, " "), strings.Join(means, " "),
			share(s.closed()),
		})
	}
	head := []string{"log", "visits", "of all versions, 95 %", "mean over pages", "gap closed"}
	markdown(out, head, rows)
	mean, least, closed := overall(all)
	if math.IsNaN(mean) {
		return
	}
	markdown(out, []string{"", "target", "seen"}, [][]string{
		{"mean lead over all logs and costs", "at least 0.05", fmt.Sprintf("%.3f", mean)},
		{"least lead", "not below −0.01", signed(least)},
		{"gap to the rate oracle closed, mean over logs", "at least 0.5", share(closed)},
	})
}

// signed formats a difference with a typographic minus sign.
func signed(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return strings.Replace(fmt.Sprintf("%+.3f", v), "-", "−", 1)
}

// wonTable counts the costs above the lowest at which Bayes catches as much as each rival, or more.
func wonTable(out *report.Printer, all []summary) {
	head := []string{"than"}
	for _, m := range matches {
		head = append(head, m.name)
	}
	var rows [][]string
	for _, f := range families()[:ofBayes] {
		row := []string{f.name}
		for m := range matches {
			t := wonOf(all, m, f.name)
			row = append(row, fmt.Sprintf("%d of %d", t.won, t.of))
		}
		rows = append(rows, row)
	}
	markdown(out, head, rows)
}

func claimTable(out *report.Printer, all []outcome) {
	head := []string{"claim"}
	var rows [][]string
	for _, o := range all {
		if len(o.claims) == 0 {
			continue
		}
		head = append(head, o.name)
		for i, c := range o.claims {
			if len(rows) <= i {
				rows = append(rows, []string{c.text})
			}
			switch {
			case c.void:
				c.brief = "–"
			case c.brief == "":
				c.brief = map[bool]string{true: "yes", false: "no"}[c.holds]
			}
			rows[i] = append(rows[i], c.brief)
		}
	}
	if len(rows) > 0 {
		markdown(out, head, rows)
	}
}

func crowdTable(out *report.Printer, all []outcome) {
	each := func(o outcome, format string, of func(crowding) float64) string {
		var cells []string
		for _, c := range o.crowds {
			cells = append(cells, fmt.Sprintf(format, of(c)))
		}
		return strings.Join(cells, " ")
	}
	const ratio, percent = "%.2f", "%.0f %%"
	var rows [][]string
	for _, o := range all {
		if len(o.crowds) == 0 {
			continue
		}
		rows = append(rows, []string{
			o.name,
			each(o, ratio, func(c crowding) float64 { return c.own }),
			each(o, ratio, func(c crowding) float64 { return c.paper }),
			each(o, ratio, func(c crowding) float64 { return c.oracle }),
			each(o, ratio, func(c crowding) float64 { return c.theory }),
			each(o, percent, func(c crowding) float64 { return 100 * c.unused }) + ", " +
				each(o, percent, func(c crowding) float64 { return 100 * c.unusedPaper }),
		})
	}
	if len(rows) > 0 {
		markdown(out, []string{
			"log", "over Bayes, first come", "over MLE.mix, first come", "oracle over Bayes, first come",
			"theory, known rates", "unused by Bayes, MLE.mix",
		}, rows)
	}
}
