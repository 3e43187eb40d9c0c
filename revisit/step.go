package revisit

import (
	"cmp"
	"time"
)

// AIMD adds to the interval after a visit without a change, and multiplies it after one with a
// change: equation 6 of the paper, and TCP's answer to congestion. It steps from the interval that
// was planned, so late visits do not lengthen it; one in 31 counts as it was, but as no more than
// about the longest interval before.
type AIMD struct {
	Add      time.Duration // after a visit without a change; 0 means DefaultAdd
	Mul      float64       // after a visit with a change, below 1; 0 means DefaultMul
	Patience int           // quiet visits in a row before Add is added, at most 31; 0 means 1
	Second   time.Duration // from the first visit to the second; 0 means DefaultSecond
	Min      time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max      time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Next follows equation 6. With a Patience of 2 it is the paper's "half a day" variant: a day is
// added after every second visit in a row without a change.
func (p AIMD) Next(h History) time.Duration {
	patience, add, mul := max(p.Patience, 1), cmp.Or(p.Add, DefaultAdd), cmp.Or(p.Mul, DefaultMul)
	return h.repeat(p.Second, p.Min, p.Max, func(interval float64, quiet int) float64 {
		switch {
		case quiet == 0:
			return interval * mul
		case quiet%patience == 0:
			return interval + add.Seconds()
		}
		return interval
	})
}

// Scale multiplies the interval by one number after a visit without a change, and by another one
// after a visit with a change. [Nutch] and [StormCrawler] return the two rules in wide use. Like
// the originals, it multiplies the planned interval, so late visits do not lengthen it, as in [AIMD].
type Scale struct {
	Grow   float64       // after a visit without a change, above 1; 0 means 1.5
	Shrink float64       // after a visit with a change, below 1; 0 means 0.5
	Second time.Duration // from the first visit to the second; 0 means DefaultSecond
	Min    time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max    time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Nutch returns the rule of Apache Nutch's AdaptiveFetchSchedule with its default rates and bounds,
// but without its shift towards the time of the last change. With the shift it never catches more
// than about 0.8 of the versions, whatever the rates.
func Nutch() Scale {
	return Scale{Grow: 1.4, Shrink: 0.8, Second: 30 * 24 * time.Hour, Min: time.Minute}
}

// StormCrawler returns the rule of StormCrawler's AdaptiveScheduler with its default rates and
// bounds.
func StormCrawler() Scale {
	return Scale{
		Grow: 1.5, Shrink: 0.5,
		Second: 24 * time.Hour, Min: time.Hour, Max: 14 * 24 * time.Hour,
	}
}

// Next multiplies the previous interval. It has no other memory, so it never settles: the intervals
// of a page with a steady rate keep changing by the factor.
func (p Scale) Next(h History) time.Duration {
	grow, shrink := cmp.Or(p.Grow, 1.5), cmp.Or(p.Shrink, 0.5)
	return h.repeat(p.Second, p.Min, p.Max, func(interval float64, quiet int) float64 {
		if quiet == 0 {
			return interval * shrink
		}
		return interval * grow
	})
}

// repeat returns the interval that a rule derives from the planned intervals of h.
func (h *History) repeat(second, low, high time.Duration,
	rule func(interval float64, quiet int) float64) time.Duration {
	if h.last == 0 {
		return within(0, low, high)
	}
	lo, hi := bounds(low, high)
	second = cmp.Or(second, DefaultSecond)
	return within(h.plan.repeat(second.Seconds(), lo.Seconds(), hi.Seconds(), rule), low, high)
}
