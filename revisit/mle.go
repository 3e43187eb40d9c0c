package revisit

import (
	"cmp"
	"math"
	"time"
)

// A Representative stands for all intervals that ended with a change in equation 4.
type Representative uint8

// The paper's three representatives: its tc,mix, tc,min and tc,avg. Mix is its choice.
const (
	Mix      Representative = iota // the geometric mean of the other two
	Shortest                       // the shortest interval: more visits, fewer versions missed
	Mean                           // the mean interval
)

// MLE waits for a share of the page's mean interval between changes, estimated by maximum
// likelihood: equations 4 and 5 of Tamura and Kitsuregawa, "Evaluation of Scheduling Methods of an
// Incremental Crawler for Large Scale Web Archives" (2008). If T is the time since the first visit,
// U the part of it in intervals without a change, and tc the representative of those with one, the
// estimate is tc / ln(T/U). It never forgets, so it notices late that a page has become active.
type MLE struct {
	Rep    Representative // the zero value is Mix
	Low    float64        // least factor on tc; 0 means DefaultLow
	High   float64        // largest, also on the interval before any change; 0 means DefaultHigh
	Alpha  float64        // share of the mean interval to wait; 0 means 1
	Second time.Duration  // from the first visit to the second; 0 means DefaultSecond
	Min    time.Duration  // least interval; 0 means DefaultMin, negative means one second
	Max    time.Duration  // longest interval; 0 means DefaultMax, negative means a century
}

// Next follows equation 5 exactly; only Min and Max are added. Alpha does not affect the intervals
// before the first change, which grow by High: days 7, 77 and 442 with the defaults, and 777 with a
// negative Max. On real pages this is the main loss of the method. Max = 60 days or High = 3 avoids it.
func (p MLE) Next(h History) time.Duration {
	if h.changes == 0 {
		high := cmp.Or(p.High, DefaultHigh)
		return h.repeat(p.Second, p.Min, p.Max, func(interval float64, _ int) float64 {
			return interval * high
		})
	}
	return within(cmp.Or(p.Alpha, 1)*p.factor(&h)*p.Rep.of(&h), p.Min, p.Max)
}

// factor returns mu = 1/ln(T/U) within its bounds. If U is 0, so is mu; if U is T, it is infinite.
// Neither is an error: this is why the paper has bounds.
func (p MLE) factor(h *History) float64 {
	mu := 1 / math.Log(float64(h.total)/float64(h.quiet))
	return max(cmp.Or(p.Low, DefaultLow), min(mu, cmp.Or(p.High, DefaultHigh)))
}

// of returns the representative in seconds. It requires that a change was seen. The shortest
// interval shows what a page does when it is busy, the mean one what it usually does; equation 4 is
// exact if they are equal.
func (r Representative) of(h *History) float64 {
	mean := float64(h.total-h.quiet) / float64(h.changes)
	switch r {
	case Shortest:
		return h.shortest.long()
	case Mean:
		return mean
	default:
		return math.Sqrt(h.shortest.long() * mean)
	}
}
