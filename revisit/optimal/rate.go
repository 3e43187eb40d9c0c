package optimal

import (
	"cmp"
	"math"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
)

// CGM waits for a share of the mean interval between changes, estimated by the method of Cho and
// Garcia-Molina, "Estimating frequency of change" (2003): rate = -ln((X+0.5)/(n+0.5)) / I, where X
// of n visits found no change and I is the interval. The two halves remove most of the bias of the
// plain estimator and keep it finite. They assume equal intervals; otherwise I is the mean.
// Intervals have the default bounds of package revisit.
type CGM struct {
	Alpha float64 // share of the mean interval to wait; 0 means 1
}

// Next returns Alpha over the estimated rate, and the longest interval if no change was seen yet.
func (p CGM) Next(h revisit.History) time.Duration {
	visits, changes := h.Visits()
	switch {
	case h.Last().IsZero():
		return revisit.DefaultMin
	case visits == 0:
		return revisit.DefaultSecond
	}
	n, unchanged := float64(visits), float64(visits-changes)
	interval := h.Span().Seconds() / n
	wait := cmp.Or(p.Alpha, 1) * interval / math.Log((n+0.5)/(unchanged+0.5))
	const least, most = revisit.DefaultMin, revisit.DefaultMax
	if !(wait < most.Seconds()) { // infinite without a change; NaN
		return most
	}
	return time.Duration(max(wait, least.Seconds()) * float64(time.Second))
}

// A Gap is the time between two visits, and whether the second one found a change.
type Gap struct {
	Length  time.Duration
	Changed bool
}

// Rate returns the changes per day that explain the gaps best if changes come at random at a
// constant rate: the root of equation 2 of the paper. Estimators that have only a History are
// measured against it. It is 0 if no gap has a change, and infinite if all have one. Gaps that are
// not positive are ignored.
func Rate(gaps []Gap) float64 {
	quiet, changed := 0.0, 0.0
	for _, g := range gaps {
		switch length := g.Length.Hours() / 24; {
		case length <= 0:
		case g.Changed:
			changed++
		default:
			quiet += length
		}
	}
	switch {
	case changed == 0:
		return 0
	case quiet == 0:
		return math.Inf(1)
	}
	// 1/(exp(x)-1) < 1/x, so the sum of equation 2 is at most changed/rate, and the root lies below
	// changed/quiet. The bisection continues until no float lies between its bounds, which takes
	// about 60 steps and needs no tolerance, which would depend on the unit.
	for low, high := 0.0, changed/quiet; ; {
		mid := low + (high-low)/2
		switch {
		case mid <= low || mid >= high:
			return low
		case excess(gaps, mid) > quiet:
			low = mid
		default:
			high = mid
		}
	}
}

// excess returns the left side of equation 2. Each term falls as the rate rises, so that the
// equation has one root.
func excess(gaps []Gap, rate float64) (sum float64) {
	for _, g := range gaps {
		if t := g.Length.Hours() / 24; g.Changed && t > 0 {
			sum += t / math.Expm1(rate*t)
		}
	}
	return sum
}
