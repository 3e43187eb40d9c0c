package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/revisit"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// An order is a rule for the visits of an overloaded server.
type order struct {
	name string
	next chooser
	// stretch lengthens all intervals by one factor, so that they fit: section 5.2.
	stretch bool
	// rank, if any, orders the pages that are due; without it they come in the order of their
	// times.
	rank func(t *track, today float64) float64
	// eager also queues pages that are not due yet, once a day has passed since their last visit.
	eager bool
}

// orders are the rules to compare. The first one sets the demand that servers cannot meet; price is
// the one at which Bayes has the same demand.
func orders(price float64) []order {
	bayes := revisit.Bayes{Price: price}
	byMLE, byBayes := plain("", revisit.MLE{}).next, plain("", bayes).next
	worth := func(t *track, today float64) float64 {
		return bayes.Worth(t.history, time.Duration((today-t.last)*float64(day)))
	}
	known := func(t *track, today float64) float64 { return gain((today - t.last) / t.page.gap()) }
	return []order{
		{name: "MLE.mix, first come", next: byMLE},
		{name: "MLE.mix, stretched", next: byMLE, stretch: true},
		{name: "Bayes, first come", next: byBayes},
		{name: "Bayes, stretched", next: byBayes, stretch: true},
		{name: "Bayes, most worthy of the due", next: byBayes, rank: worth},
		{name: "Bayes, most worthy of all", next: byBayes, rank: worth, eager: true},
		{name: "rate oracle, most worthy of all", next: byBayes, rank: known, eager: true},
	}
}

// Indices into orders that the tables use. The others are compared with ofCome.
const (
	ofPaper  = 0
	ofCome   = 2
	ofWorthy = 5
	ofKnown  = 6
)

// priceFor returns the price at which Bayes requests as many visits as MLE.mix.
func (l lab) priceFor(pages []page) float64 {
	demand := l.demand(pages, plain("", revisit.MLE{}).next)
	low, high := math.Log(1e-3), math.Log(10.0)
	for range 12 {
		mid := (low + high) / 2
		if l.demand(pages, plain("", revisit.Bayes{Price: math.Exp(mid)}).next) > demand {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(low)
}

// A crowd is one server with its pages and the visits per day that it admits.
type crowd struct {
	tracks    []track
	load      revisit.Demand
	intervals []time.Duration // of each page in the load
	admits    float64
	savings   float64 // visits admitted and not made, at most one day's or one
	unused    float64
}

// servers distributes the pages to servers with 1 to 1,093 pages, each three times as large as the
// previous one, and then from 1 again.
func servers(pages []page) (groups [][]page) {
	const largest = 1093
	for size := 1; len(pages) > 0; size = size%largest*3 + 1 {
		n := min(size, len(pages))
		groups = append(groups, pages[:n])
		pages = pages[n:]
	}
	return groups
}

// demand returns the visits per day without overload.
func (l lab) demand(pages []page, next chooser) float64 {
	sum := 0
	for _, t := range l.simulate(pages, &strategy{next: next}) {
		sum += t.visits + 1
	}
	return float64(sum) / year
}

// overload returns the results of each order when each server admits a share of the visits of
// MLE.mix, and the share of admitted visits that were unused.
func (l lab) overload(
	pages []page, share float64, orders []order,
) (scores []score, unused []float64) {
	scores, unused = make([]score, len(orders)), make([]float64, len(orders))
	for _, group := range servers(pages) {
		admits := share * l.demand(group, orders[0].next)
		for i, o := range orders {
			c := crowd{
				tracks: make([]track, len(group)), intervals: make([]time.Duration, len(group)), admits: admits,
			}
			for n := range group {
				c.tracks[n].page = &group[n]
			}
			for today := range year {
				l.serve(&c, o, float64(today))
			}
			for n := range c.tracks {
				scores[i].addTrack(&c.tracks[n])
			}
			unused[i] += c.unused / (admits * year)
		}
	}
	for i := range unused {
		unused[i] /= float64(len(servers(pages)))
	}
	return scores, unused
}

// serve makes one day's visits to one server.
func (l lab) serve(c *crowd, o order, today float64) {
	c.savings += c.admits
	queue := c.queue(o, today)
	for c.savings >= 1 && len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		c.savings--
		t := &c.tracks[n]
		t.due = today
		l.visit(t, false)
		wait := max(o.next(t), l.step)
		if c.intervals[n] > 0 {
			c.load.Remove(c.intervals[n])
		}
		c.intervals[n] = duration(wait)
		c.load.Add(c.intervals[n])
		if o.stretch {
			wait = min(wait*c.load.Stretch(c.admits), max(wait, year/2))
		}
		t.due = today + wait
	}
	// Unused visits expire.
	if most := max(c.admits, 1); c.savings > most {
		c.unused += c.savings - most
		c.savings = most
	}
}

// queue returns the pages that may be visited today, in order.
func (c *crowd) queue(o order, today float64) (queue []int) {
	rank := make([]float64, len(c.tracks))
	for n := range c.tracks {
		t := &c.tracks[n]
		due := t.due <= today
		if !due && (!o.eager || today-t.last < 1) {
			continue
		}
		queue = append(queue, n)
		switch {
		case t.history == (revisit.History{}):
			rank[n] = math.Inf(1) // so that all orders know the same pages
		case o.rank == nil:
			rank[n] = -t.due
		default:
			rank[n] = o.rank(t, today)
		}
	}
	slices.SortStableFunc(queue, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	return queue
}

// printOverload prints the results when servers admit three quarters and half of the demand, and
// returns them in short.
func (r *result) printOverload(out *report.Printer, l lab) (crowds []crowding) {
	all := orders(l.priceFor(r.pages))
	for _, share := range []float64{0.75, 0.5} {
		theory := l.orderGain(r.pages, share)
		out.Printf("\nservers admit %.0f %% of the visits of MLE.mix(0.1-10); with known rates, "+
			"the best order catches %.3f of first come\n", share*100, theory)
		scores, unused := l.overload(r.pages, share, all)
		out.Table(func(row func(string, ...any)) {
			row("order\tvisits\tall versions\tof first come\tcoverage\tunused")
			for i, o := range all {
				s := &scores[i]
				row("%s\t%.1f\t%.3f\t%.2f\t%.3f\t%.1f %%", o.name, s.perPage(), s.micro(),
					s.micro()/scores[ofCome].micro(), s.macro(), unused[i]*100)
			}
		})
		come := scores[ofCome].micro()
		crowds = append(crowds, crowding{
			own:    scores[ofWorthy].micro() / come,
			paper:  scores[ofWorthy].micro() / scores[ofPaper].micro(),
			oracle: scores[ofKnown].micro() / come,
			theory: theory,
			unused: unused[ofCome], unusedPaper: unused[ofPaper],
		})
	}
	return crowds
}
