package revisit

import "time"

// Defaults of [AIMD].
const (
	DefaultAdd = 24 * time.Hour
	DefaultMul = 0.5
)

// AIMD adds to the interval after a visit without a change, and multiplies it after one with a
// change: equation 6 of the paper, and TCP's answer to congestion.
type AIMD struct {
	Add      time.Duration // after a visit without a change; 0 means DefaultAdd
	Mul      float64       // after a visit with a change, below 1; 0 means DefaultMul
	Patience int           // quiet visits in a row before Add is added, at most 255; 0 means 1
	Second   time.Duration // from the first visit to the second; 0 means DefaultSecond
	Min      time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max      time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Next follows equation 6. With a Patience of 2 it is the paper's "half a day" variant: a day is
// added after every second visit in a row without a change.
func (p AIMD) Next(h History) time.Duration {
	next := h.interval.long()
	switch {
	case h.last == 0:
		return 0
	case h.visits == 0:
		next = orElse(p.Second, DefaultSecond).Seconds()
	case h.streak == 0:
		next *= orElse(p.Mul, DefaultMul)
	// The streak stops counting at 255, from where on a patience of 1 adds at each visit, and one that
	// does not divide 255 never: by then the interval is long.
	case int(h.streak)%max(p.Patience, 1) == 0:
		next += orElse(p.Add, DefaultAdd).Seconds()
	}
	return within(next, p.Min, p.Max)
}

// Scale multiplies the interval by one number after a visit without a change, and by another one
// after a visit with a change. [Nutch] and [StormCrawler] return the two that are in wide use.
type Scale struct {
	Grow   float64       // after a visit without a change, above 1; 0 means 1.5
	Shrink float64       // after a visit with a change, below 1; 0 means 0.5
	Second time.Duration // from the first visit to the second; 0 means DefaultSecond
	Min    time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max    time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Nutch returns the rule of Apache Nutch's AdaptiveFetchSchedule with its default rates and bounds,
// without its shift towards the time of the last change: that one keeps it from ever catching more
// than some 0.8 of the versions, whatever the rates.
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

// Next multiplies the last interval. It needs no more memory than that, and so it never settles: a
// page of a steady rate is visited at intervals that differ by the factor from one to the next.
func (p Scale) Next(h History) time.Duration {
	next := h.interval.long()
	switch {
	case h.last == 0:
		return 0
	case h.visits == 0:
		next = orElse(p.Second, DefaultSecond).Seconds()
	case h.streak == 0:
		next *= orElse(p.Shrink, 0.5)
	default:
		next *= orElse(p.Grow, 1.5)
	}
	return within(next, p.Min, p.Max)
}
