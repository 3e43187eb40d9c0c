package main

import (
	"math"
	"slices"
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
