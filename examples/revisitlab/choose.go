package main

import (
	"fmt"
	"io"
	"math"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// A dial is one of the parameters with the values to try for it, the plainest one first.
type dial struct {
	name   string
	values []float64
	of     func(*numbers) *float64
}

// dials are tuned in turn, twice, each with the best values of the others so far.
var dials = []dial{
	{"fair", []float64{1, 3, 7, 14, 30, 60, 1e6}, func(n *numbers) *float64 { return &n.fair }},
	{"trust", []float64{1, .85, .7, .5}, func(n *numbers) *float64 { return &n.trust }},
	{"wake", []float64{.0001, .0003, .001, .003}, func(n *numbers) *float64 { return &n.wake }},
	{"steady", []float64{0, .25, .5, 1}, func(n *numbers) *float64 { return &n.steady }},
}

// plainest are the parameters at which the choice starts: those of a textbook. Starting with the
// library's would keep them wherever nothing else is better.
func plainest() (n numbers) {
	for _, d := range dials {
		*d.of(&n) = d.values[0]
	}
	return n
}

// modelPrices are the prices at which the model is run. Between them, curves are nearly straight.
// They are closest at 1, where busy pages drop out. More prices would not be worth the time.
var modelPrices = []float64{
	20, 12, 7, 4.5, 3, 2.2, 1.6, 1.3, 1.1, .98, .92, .85, .75, .62, .5, .38, .27, .18, .1, .05, .025,
}

// A trial is one half of a log, with the results of the rivals on it. Rivals have no parameters to
// choose, so they run once.
type trial struct {
	name  string
	pages []page
	costs []float64 // visits per page, those of MLE.mix at summaryAlphas
	base  curve
	best  [2][]float64 // of all rivals, by cost: of all versions, and mean over pages
}

// measures are the two measures of the quality of a choice.
var measures = [2]func(*sums) float64{(*sums).micro, (*sums).macro}

// try runs the rivals at the costs that the summaries compare, which are those of the target.
func (l lab) try(name string, pages []page) *trial {
	curves := l.curves(pages, families()[:ofBayes], func(float64) {})
	t := &trial{name: name, pages: pages, base: curves[ofMLE]}
	skip := skipTo(summaryAlphas[0])
	for i := range summaryAlphas {
		visits := t.base.points[skip+i].perPage()
		t.costs = append(t.costs, visits)
		for m, of := range measures {
			best := 0.0
			for _, c := range curves {
				if v := c.at(visits, of); v > best { // false also beyond the end of a curve
					best = v
				}
			}
			t.best[m] = append(t.best[m], best)
		}
	}
	return t
}

// A verdict is the result of some parameters on some trials.
type verdict struct {
	rivals float64 // mean lead over the best rival, over costs and both measures
	paper  float64 // mean lead over MLE.mix, of all versions
	mean   float64 // the same, mean over pages
	least  float64 // least lead over MLE.mix of all versions
}

// evaluate runs the model with the given parameters. Each log has the same weight, however many
// pages it has, so that the pages of one host do not outvote another one.
func (l lab) evaluate(n numbers, trials []*trial) (v verdict) {
	v.least = math.Inf(1)
	count := 0.0
	for _, t := range trials {
		own := l.curves(t.pages, []family{sweep("", modelPrices, func(price float64) strategy {
			return modelled(n, price)
		})}, func(float64) {})[0]
		for i, visits := range t.costs {
			micro, macro := own.at(visits, (*sums).micro), own.at(visits, (*sums).macro)
			if math.IsNaN(micro) {
				continue
			}
			count++
			lead := micro - t.base.at(visits, (*sums).micro)
			v.paper += lead
			v.mean += macro - t.base.at(visits, (*sums).macro)
			v.least = min(v.least, lead)
			v.rivals += (micro - t.best[0][i] + macro - t.best[1][i]) / 2
		}
	}
	v.rivals /= count
	v.paper /= count
	v.mean /= count
	return v
}

// worst is how much worse than MLE.mix a choice may be anywhere. A shortfall below that costs ten
// times as much as a gain elsewhere.
const worst = 0.01

func (v verdict) score() float64 { return v.rivals - 10*max(-worst-v.least, 0) }

// choose tunes each dial twice, keeps improvements, and prints each step.
func (l lab) choose(trials []*trial, out *report.Printer, done func(float64)) numbers {
	best := plainest()
	bestScore := l.evaluate(best, trials).score()
	const rounds = 2
	out.Table(func(row func(string, ...any)) {
		row("number\tvalue\tof best rival\tof MLE.mix\tits mean\tleast\tscore")
		for round := range rounds {
			for d, dial := range dials {
				for _, value := range dial.values {
					n := best
					*dial.of(&n) = value
					v := l.evaluate(n, trials)
					row("%s\t%v\t%+.4f\t%+.4f\t%+.4f\t%+.4f\t%+.4f", dial.name, value, v.rivals, v.paper,
						v.mean, v.least, v.score())
					if v.score() > bestScore {
						best, bestScore = n, v.score()
					}
				}
				done(float64(round*len(dials)+d+1) / float64(rounds*len(dials)))
			}
		}
	})
	return best
}

// A set is one complete log.
type set struct {
	name  string
	pages []page
}

// chooseAndEvaluate chooses parameters on each half of all logs and evaluates them on the other
// half, together with those of the library. They are also evaluated on their own half: the
// difference is overfitting.
func (s settings) chooseAndEvaluate(sets []set, out, errs io.Writer) error {
	l := lab{step: inDays(s.resolution)}
	p := report.NewPrinter(out)
	var halves [2][]*trial
	for _, set := range sets {
		for h := range halves {
			pages := thin(ofHalf(set.pages, h+1), s.most)
			if len(pages) > 0 {
				halves[h] = append(halves[h], l.try(set.name, pages))
			}
		}
	}
	var choices [2]numbers
	for h := range halves {
		if len(halves[h]) == 0 {
			return fmt.Errorf("no log has pages in half %d", h+1)
		}
		name := fmt.Sprintf("half %d", h+1)
		p.Printf("\n# chosen on %s\n\n", name)
		choices[h] = l.choose(halves[h], p, report.Progress(errs, name))
		p.Printf("choice: %+v\n", choices[h])
	}
	p.Printf("\n# evaluated\n\n")
	p.Table(func(row func(string, ...any)) {
		row("numbers\ton\tof best rival\tof MLE.mix\tits mean\tleast")
		for h, trials := range halves {
			evaluate := func(name string, n numbers) {
				v := l.evaluate(n, trials)
				row("%s\thalf %d\t%+.4f\t%+.4f\t%+.4f\t%+.4f", name, h+1, v.rivals, v.paper, v.mean,
					v.least)
			}
			evaluate(fmt.Sprintf("chosen on half %d", 2-h), choices[1-h])
			evaluate(fmt.Sprintf("chosen on half %d", 1+h), choices[h])
			evaluate("the library's", chosen)
			evaluate("the plainest", plainest())
		}
	})
	return p.Err()
}
