package revisit

import (
	"math"
	"time"
)

// A Demand is the number of visits that all pages of one host ask for. It costs constant time per
// visit: remove the old interval of a page, add the new one. The zero Demand is empty and ready to
// use, by one goroutine at a time.
type Demand struct {
	visits uint64 // per day, in units of 2^-32; an integer, so that removing leaves no rounding error
}

// visitsOf converts an interval to visits per day, in units of a Demand. The shortest interval is a
// second, and the sum of 49,000 such pages still fits.
func visitsOf(interval time.Duration) uint64 {
	s := max(interval.Seconds(), 1)
	return uint64(day / s * (1 << 32))
}

// Add adds a page that is visited at the interval. Intervals below a second count as a second. The
// total stays at 2^32 visits per day once it gets there: what exceeds it is not counted.
func (d *Demand) Add(interval time.Duration) {
	d.visits += min(visitsOf(interval), math.MaxUint64-d.visits)
}

// Remove reverses an Add of the same interval.
func (d *Demand) Remove(interval time.Duration) { d.visits -= min(visitsOf(interval), d.visits) }

// PerDay returns the number of visits per day.
func (d *Demand) PerDay() float64 { return float64(d.visits) / (1 << 32) }

// Stretch returns the factor, at least 1, by which to lengthen all intervals of the host so that
// perDay visits per day suffice: section 5.2 of the paper. One factor for all pages is optimal if
// their intervals follow their rates. Pass unstretched intervals to Add.
//
// The factor is infinite if perDay is not positive, so bound the result. To use every available
// visit while some pages are late, visit those with the greatest [Bayes.Worth] first.
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
