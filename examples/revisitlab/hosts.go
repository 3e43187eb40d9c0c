package main

import (
	"fmt"
	"io"
	"math"

	"github.com/spinneret-go/spinneret/revisit"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// hostVisits are the visits per page and year at which policies are compared host by host.
var hostVisits = []float64{3, 4, 5, 6.5, 8, 10, 12, 15, 18, 22, 27, 40, 60, 90, 140}

// hostPrices are those that lead to this many visits.
var hostPrices = []float64{
	6, 3.5, 2.2, 1.5, 1.2, 1, .97, .93, .88, .8, .7, .6, .5, .4, .3, .22, .15, .1, .06, .03, .012,
}

func watching(name string, w watcher) family {
	return sweep(name, hostPrices, func(price float64) strategy {
		w := w
		w.policy = revisit.Bayes{Price: price}
		return strategy{watch: &w}
	})
}

// leads returns the lead of c over another curve at some costs; NaN where one of them has no value.
func (c curve) leads(other curve, costs []float64, pages []page) (leads []float64) {
	for _, visits := range costs {
		own, base := c.perPage(visits), other.perPage(visits)
		if own == nil || base == nil {
			leads = append(leads, math.NaN())
			continue
		}
		gained, all := 0.0, 0.0
		for i := range pages {
			weight := max(pages[i].weight, 1)
			gained += weight * (own(i) - base(i))
			all += weight * float64(len(pages[i].changes))
		}
		leads = append(leads, gained/all)
	}
	return leads
}

// meanLead returns the mean of the known leads at hostVisits.
func (c curve) meanLead(other curve, pages []page) string {
	return means(c.leads(other, hostVisits, pages), 1)
}

// printHosts treats each log as a host. At the end of the year all pages are visited once more: if
// many pages change on a few days, chance would otherwise decide whose last visit comes after them.
func (s settings) printHosts(sets []set, out, errs io.Writer) error {
	p := report.NewPrinter(out)
	l := lab{step: inDays(s.resolution), closing: true}
	for i := range sets {
		sets[i].pages = thin(latestOf(sets[i].pages, 3), s.most)
	}
	for _, table := range []func(lab, *report.Printer, []set, io.Writer){
		printPulses, printHints, printWeights,
	} {
		table(l, p, sets, errs)
	}
	return p.Err()
}

// printPulses prints the lead of a host's pulse over each policy, on both halves.
func printPulses(l lab, p *report.Printer, sets []set, errs io.Writer) {
	all := families()
	others := []family{
		all[ofEvery], all[ofNutch], all[ofStorm], all[ofMLE], all[ofAIMD], all[ofBayes], all[ofOracle],
	}
	p.Printf("\nlead of Bayes with a host's pulse, of all versions at equal visits\n")
	p.Table(func(row func(string, ...any)) {
		title := "log\thalf"
		for _, f := range others {
			title += "\t" + f.name
		}
		row("%s", title)
		for _, set := range sets {
			for half := 1; half <= 2; half++ {
				pages := ofHalf(set.pages, half)
				progress := report.Progress(errs, fmt.Sprintf("%s: half %d", set.name, half))
				curves := l.curves(pages, append(others, watching("", watcher{pulse: true})), progress)
				line := fmt.Sprintf("%s\t%d", set.name, half)
				for _, c := range curves[:len(others)] {
					line += "\t" + curves[len(others)].meanLead(c, pages)
				}
				row("%s", line)
			}
		}
	})
}

// latestOf returns the pages of the latest windows: a pulse needs many pages in a window.
func latestOf(pages []page, windows int) []page {
	for i, p := range pages {
		if p.window >= pages[0].window+windows {
			return pages[:i]
		}
	}
	return pages
}

// hintVisits are the visits per page and year at which uses of hints are compared. A crawler that
// follows each hint cannot make fewer visits than there are hints.
var hintVisits = []float64{6.5, 15, 40}

// hintPages is a sufficient number of pages of a log to compare hints, which say nothing about
// other pages.
const hintPages = 400

// printHints prints the gain of each way to use hints over using none, by their reliability.
func printHints(l lab, p *report.Printer, sets []set, errs io.Writer) {
	ways := []family{
		watching("none", watcher{}),
		watching("by how often they are right", watcher{trust: weighHints}),
		watching("silence counts, too", watcher{trust: modelHints}),
		watching("", watcher{trust: followHints}),
	}
	p.Printf("\nlead over a crawler that uses no hints, at %v visits, mean over the logs\n", hintVisits)
	p.Table(func(row func(string, ...any)) {
		title := "announced\twrong per year"
		for _, f := range ways[1:3] {
			title += "\t" + f.name
		}
		row("%s\tthe same, over a visit for each", title)
		for _, recall := range []float64{0.3, 0.7, 0.95} {
			for _, wrong := range []float64{1, 12, 52} {
				leads := make([][]float64, len(ways))
				for _, set := range sets {
					pages := announce(thin(set.pages, hintPages), recall, wrong)
					progress := report.Progress(errs, fmt.Sprintf("%s: %v, %v", set.name, recall, wrong))
					curves := l.curves(pages, ways, progress)
					for i, c := range curves[:3] {
						leads[i] = append(leads[i], c.leads(curves[0], hintVisits, pages)...)
					}
					// A visit for each hint is too many for some logs, so the two are compared
					// where both have values.
					leads[3] = append(leads[3], curves[2].leads(curves[3], hintVisits, pages)...)
				}
				line := fmt.Sprintf("%v\t%v", recall, wrong)
				for _, lead := range leads[1:] {
					line += "\t" + means(lead, len(hintVisits))
				}
				row("%s", line)
			}
		}
	})
}

// means returns the column means of a table that is passed row by row, ignoring NaN.
func means(table []float64, columns int) (text string) {
	for column := range columns {
		sum, n := 0.0, 0.0
		for i := column; i < len(table); i += columns {
			if !math.IsNaN(table[i]) {
				sum += table[i]
				n++
			}
		}
		text += " " + signed(sum/n)
	}
	return text[1:]
}

// printWeights prints the gain of visiting pages by their weight.
func printWeights(l lab, p *report.Printer, sets []set, errs io.Writer) {
	blind := sweep("", hostPrices, func(price float64) strategy {
		return plain("", revisit.Bayes{Price: price})
	})
	weighing := sweep("", append([]float64{20, 12}, hostPrices...), func(price float64) strategy {
		return strategy{next: func(t *track) float64 {
			return inDays(revisit.Bayes{Price: price / t.page.weight}.Next(t.history))
		}}
	})
	p.Printf("\nlead of visits by weight, Price/weight, over those at one price: share of the weight caught\n")
	p.Table(func(row func(string, ...any)) {
		row("log\tlead")
		for _, set := range sets {
			pages := weigh(set.pages)
			curves := l.curves(pages, []family{blind, weighing}, report.Progress(errs, set.name+": weights"))
			row("%s\t%s", set.name, curves[1].meanLead(curves[0], pages))
		}
	})
}
