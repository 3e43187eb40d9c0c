package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// A summary is the result of Bayes for one log, at the costs of MLE.mix with these alphas.
type summary struct {
	name  string
	costs []summaryCost
	// won counts, for each rival and each match, the costs above the lowest at which ours catches
	// at least as much, and the total.
	won [len(matches)]map[string]*tally
}

// summaryAlphas are the values of alpha to compare at: a quarter to three times the visits of the
// paper's own setting.
var summaryAlphas = []float64{2, 1, 0.5, 0.3}

// A summaryCost is Bayes at one cost.
type summaryCost struct {
	visits       float64
	lead, margin float64 // over MLE.mix, of all versions
	mean         float64 // lead by the mean over pages
	oracle       float64 // lead of the rate oracle, of all versions
}

type tally struct{ won, of int }

// matches are the ways to compare policies: by which measure, and with which of ours. No setting is
// best by both measures, since busy pages have most versions, but most pages are slow. The oracle
// shows this: its Fair is the one with which it wins most cases by both measures.
var matches = [...]struct {
	name string
	own  int
	of   func(*sums) float64
}{
	{"of all versions", ofBayes, (*sums).micro},
	{"mean over pages", ofBayes, (*sums).macro},
	{"mean over pages, Fair 7 days", ofEven, (*sums).macro},
	{"oracle of all versions", ofKnower, (*sums).micro},
	{"oracle mean over pages", ofKnower, (*sums).macro},
}

// summarize summarizes the curves, which must exist.
func (r *result) summarize() (s summary) {
	s.name = r.name
	base, own := r.curves[ofMLE], r.curves[ofBayes]
	for i := range s.won {
		s.won[i] = map[string]*tally{}
	}
	skip := skipTo(summaryAlphas[0])
	for i := range summaryAlphas {
		visits := base.points[skip+i].perPage()
		c := summaryCost{visits: visits}
		c.lead, c.margin = own.lead(base, visits, r.pages)
		c.mean = own.at(visits, (*sums).macro) - base.at(visits, (*sums).macro)
		c.oracle = r.curves[ofOracle].at(visits, (*sums).micro) - base.at(visits, (*sums).micro)
		s.costs = append(s.costs, c)
		if i > 0 {
			s.count(r.curves, visits)
		}
	}
	return s
}

// skipTo returns the index of an alpha's point on the curve of MLE. Curves are sorted by visits, so
// alphas decrease.
func skipTo(alpha float64) int { return slices.Index(mleAlphas, alpha) }

// count compares ours with the rivals, which come first, at one cost.
func (s *summary) count(curves []curve, visits float64) {
	for i, m := range matches {
		ours := curves[m.own].at(visits, m.of)
		for _, c := range curves[:ofBayes] {
			theirs := c.at(visits, m.of)
			if math.IsNaN(theirs + ours) {
				continue // the curve of the rule does not reach this cost
			}
			t := s.won[i][c.name]
			if t == nil {
				t = &tally{}
				s.won[i][c.name] = t
			}
			t.of++
			if ours >= theirs {
				t.won++
			}
		}
	}
}

// closed returns the share of the gap between MLE.mix and the rate oracle that Bayes closes, over
// all costs together: where the gap is nearly zero, its share is meaningless.
func (s *summary) closed() float64 {
	lead, gap := 0.0, 0.0
	for _, c := range s.costs {
		if !math.IsNaN(c.lead + c.oracle) {
			lead += c.lead
			gap += c.oracle
		}
	}
	if gap <= 0 {
		return math.NaN()
	}
	return lead / gap
}

// printSummaries prints the summaries of all logs.
func printSummaries(out *report.Printer, all []summary) {
	out.Printf("\n# Bayes minus MLE.mix(0.1-10) at equal visits, at alpha")
	for _, a := range summaryAlphas {
		out.Printf(" %v", a)
	}
	out.Printf("\n\n")
	out.Table(func(row func(string, ...any)) {
		row("log\tvisits\tof all versions, 95 %%\tmean over pages\tgap to the rate oracle closed")
		for i := range all {
			s := &all[i]
			visits, leads, means := "", "", ""
			for _, c := range s.costs {
				visits += fmt.Sprintf("%.3g ", c.visits)
				if math.IsNaN(c.lead) {
					leads, means = leads+"- ", means+"- " // beyond the curve of Bayes
					continue
				}
				leads += fmt.Sprintf("%+.3f±%.3f ", c.lead, c.margin)
				means += fmt.Sprintf("%+.3f ", c.mean)
			}
			row("%s\t%s\t%s\t%s\t%s", s.name, visits, leads, means, share(s.closed()))
		}
	})
	mean, least, closed := overall(all)
	if !math.IsNaN(mean) {
		out.Printf("over all logs and costs: mean %+.3f, least %+.3f, gap closed %s\n", mean, least,
			share(closed))
	}
	printWon(out, all)
}

// overall returns the mean and the least lead, and the mean share of the gap that is closed.
func overall(all []summary) (mean, least, closed float64) {
	least = math.Inf(1)
	leads, logs := 0.0, 0.0
	for i := range all {
		for _, c := range all[i].costs {
			if !math.IsNaN(c.lead) {
				leads++
				mean += c.lead
				least = min(least, c.lead)
			}
		}
		if share := all[i].closed(); !math.IsNaN(share) {
			logs++
			closed += share
		}
	}
	return mean / leads, least, closed / logs
}

// printWon prints how often Bayes is ahead of each rival.
func printWon(out *report.Printer, all []summary) {
	out.Printf("\nBayes catches as much or more, of all costs above the lowest\n")
	out.Table(func(row func(string, ...any)) {
		head := "than"
		for _, m := range matches {
			head += "\t" + m.name
		}
		row("%s", head)
		for _, f := range families()[:ofBayes] {
			text := f.name
			for m := range matches {
				t := wonOf(all, m, f.name)
				text += fmt.Sprintf("\t%d of %d", t.won, t.of)
			}
			row("%s", text)
		}
	})
}

// wonOf sums over all logs how often a rival was beaten in one match.
func wonOf(all []summary, match int, rival string) (sum tally) {
	for i := range all {
		if t := all[i].won[match][rival]; t != nil {
			sum.won += t.won
			sum.of += t.of
		}
	}
	return sum
}
