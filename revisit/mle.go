package revisit

import (
	"math"
	"time"
)

// A Representative is what stands for all intervals that ended with a change in equation 4.
type Representative uint8

// The paper's three representatives. Mix, the geometric mean of the other two, is its choice.
const (
	Mix Representative = iota
	Min                // the shortest interval: more visits, fewer versions missed
	Avg                // the mean interval
)

// String returns the paper's name.
func (r Representative) String() string {
	switch r {
	case Min:
		return "min"
	case Avg:
		return "avg"
	default:
		return "mix"
	}
}

// Defaults of [MLE].
const (
	DefaultLow  = 0.1
	DefaultHigh = 10
)

// MLE waits for a share of the page's mean interval between changes, estimated by maximum
// likelihood: equations 4 and 5 of Tamura and Kitsuregawa, "Evaluation of Scheduling Methods of an
// Incremental Crawler for Large Scale Web Archives" (2008). With T the time since the first visit,
// U the part of it in intervals without a change and tc the representative of those with one, the
// estimate is tc / ln(T/U). It never forgets, so a page that wakes up is noticed late.
type MLE struct {
	Rep    Representative // the zero value is Mix
	Low    float64        // least factor on tc; 0 means DefaultLow
	High   float64        // largest, also on the interval before any change; 0 means DefaultHigh
	Alpha  float64        // share of the mean interval to wait; 0 means 1
	Second time.Duration  // from the first visit to the second; 0 means DefaultSecond
	Min    time.Duration  // least interval; 0 means DefaultMin, negative means one second
	Max    time.Duration  // longest interval; 0 means DefaultMax, negative means a century
}

// Next follows equation 5 to the letter; only Min and Max are added. Alpha does not touch the
// intervals before the first change, which grow by High: days 7, 77 and 777 with the defaults. On
// real pages this is the main loss of the method, and Max = 60 days or High = 3 its cure.
func (p MLE) Next(h History) time.Duration {
	switch {
	case h.last == 0:
		return 0
	case h.visits == 0:
		return within(orElse(p.Second, DefaultSecond).Seconds(), p.Min, p.Max)
	case h.changes == 0:
		return within(orElse(p.High, DefaultHigh)*h.interval.long(), p.Min, p.Max)
	}
	return within(orElse(p.Alpha, 1)*p.factor(&h)*p.Rep.of(&h), p.Min, p.Max)
}

// factor returns mu = 1/ln(T/U) within its bounds. Where U is 0 so is mu; where U is T it is
// infinite. Neither is an error: the bounds are what the paper has them for.
func (p MLE) factor(h *History) float64 {
	mu := 0.0
	if h.quiet > 0 {
		mu = 1 / ln(float64(h.total)/float64(h.quiet))
	}
	return max(orElse(p.Low, DefaultLow), min(mu, orElse(p.High, DefaultHigh)))
}

// pieces are how many parts ln divides each octave into.
const (
	pieceBits = 7
	pieces    = 1 << pieceBits
)

// lnPieces has, for the begin of each piece, its inverse and its logarithm.
var lnPieces [pieces]struct{ inverse, ln float64 }

func init() {
	for i := range lnPieces {
		begin := 1 + float64(i)/pieces
		lnPieces[i].inverse, lnPieces[i].ln = 1/begin, math.Log(begin)
	}
}

// ln returns the logarithm of a number from 1 to 2^32, wrong by at most 1e-9 of it. A quarter of
// the time of a visit would go into that of package math, which is right to the last digit.
func ln(x float64) float64 {
	const fraction = 52 // bits of a float64
	b := math.Float64bits(x)
	piece := &lnPieces[b>>(fraction-pieceBits)%pieces]
	mantissa := math.Float64frombits(b&(1<<fraction-1) | math.Float64bits(1))
	// What is left is less than 1/128, so that four terms of its series are enough. The first piece
	// begins at 1: there, where logarithms vanish, nothing cancels.
	f := mantissa*piece.inverse - 1
	series := f * (1 - f*(1.0/2-f*(1.0/3-f*(1.0/4))))
	return float64(int(b>>fraction)-1023)*math.Ln2 + piece.ln + series
}

// of returns the representative in seconds. It requires that a change was seen. The shortest
// interval stands for what a page does when it is busy, the mean one for what it does as a rule;
// equation 4 is exact if they are the same.
func (r Representative) of(h *History) float64 {
	avg := float64(h.total-h.quiet) / float64(h.changes)
	switch r {
	case Min:
		return h.shortest.long()
	case Avg:
		return avg
	default:
		return math.Sqrt(h.shortest.long() * avg)
	}
}
