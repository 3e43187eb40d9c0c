package revisit

import (
	"math"
	"time"
)

// A Demand is how many visits the pages of one host ask for, all together. It costs constant time
// per visit: remove the old interval of a page, add the new one. The zero Demand is empty and ready
// to use, by one goroutine at a time.
type Demand struct {
	visits uint64 // per day, in units of 2^-32; whole numbers, so that removing leaves no rounding
}

// visitsOf returns the visits per day that an interval makes, in units of a Demand. A second is the
// shortest interval there is, and the sum of 49,000 such pages still fits.
func visitsOf(interval time.Duration) uint64 {
	s := max(interval.Seconds(), 1)
	return uint64(day / s * (1 << 32))
}

// Add adds a page that is visited at the interval, which counts as a second if it is shorter. All
// pages together may come to 2^32 visits a day.
func (d *Demand) Add(interval time.Duration) { d.visits += visitsOf(interval) }

// Remove takes back what Add added for the same interval.
func (d *Demand) Remove(interval time.Duration) { d.visits -= min(visitsOf(interval), d.visits) }

// PerDay returns how many visits a day the intervals make.
func (d *Demand) PerDay() float64 { return float64(d.visits) / (1 << 32) }

// Stretch returns the factor, at least 1, by which all intervals of the host have to grow so that
// perDay visits a day suffice: section 5.2 of the paper. One factor for all pages is optimal if
// their intervals follow their rates. Add intervals as they were before stretching.
//
// The factor is infinite if perDay is not positive, so bound the result. To leave no visit unused
// while some pages are late, take those with the greatest [Bayes.Worth] first.
func (d *Demand) Stretch(perDay float64) float64 {
	switch demand := d.PerDay(); {
	case demand == 0:
		return 1
	case !(perDay > 0):
		return math.Inf(1)
	default:
		return max(1, demand/perDay)
	}
}
