package revisit

import (
	"cmp"
	"time"
)

// A Policy says how long to wait after the last visit before the next one. The policies of this
// package are plain values without state, so goroutines may share them.
type Policy interface {
	// Next returns the time from the last visit to the next one. h.Last().Add(Next(h)) is when the
	// page is due. That is in the year 1 if it was never visited: the policies of this package then
	// return their Min, so that a caller who counts from a failed first visit has a pause, too.
	Next(h History) time.Duration
}

// The defaults for zero fields of the policies, and Size, the length of an encoded [History] in
// bytes. If Max is shorter than DefaultMin, a zero Min is Max; a Min that is set counts in any case.
//
// With the default Price and Fair, a page that has long changed daily at random is visited every
// 1.8 days, and one that changed every three weeks about once a month. A page that changed once a
// year is visited every seven to eleven weeks: the more often it was visited, the less doubt there
// is about its rate.
const (
	DefaultSecond = 7 * 24 * time.Hour
	DefaultMin    = 24 * time.Hour
	DefaultMax    = 365 * 24 * time.Hour

	DefaultPrice = 0.5                 // of Bayes
	DefaultFair  = 30 * 24 * time.Hour // of Bayes
	DefaultLow   = 0.1                 // of MLE
	DefaultHigh  = 10                  // of MLE
	DefaultAdd   = 24 * time.Hour      // of AIMD
	DefaultMul   = 0.5                 // of AIMD

	Size = 40
)

// century means no upper bound: longer than any history, and short enough for a Duration.
const century = 100 * 365 * 24 * time.Hour

// Every is the policy that visits all pages at the same interval.
type Every time.Duration

// Next returns e, or 0 if it is negative, whatever the history.
func (e Every) Next(History) time.Duration { return max(time.Duration(e), 0) }

// bounds returns the values of Min and Max. The default of one gives way to the other.
func bounds(low, high time.Duration) (lo, hi time.Duration) {
	lo, hi = cmp.Or(low, DefaultMin), cmp.Or(high, DefaultMax)
	if high < 0 {
		hi = century
	}
	if low == 0 {
		lo = min(lo, hi)
	}
	lo = max(lo, time.Second)
	return lo, max(lo, hi)
}

// within returns s seconds as a duration between the bounds.
func within(s float64, low, high time.Duration) time.Duration {
	lo, hi := bounds(low, high)
	ns := s * float64(time.Second)
	// It compares floats, since s may be too long for a duration, infinite or NaN.
	if !(ns < float64(hi)) {
		return hi
	}
	return max(time.Duration(ns), lo)
}
