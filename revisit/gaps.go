package revisit

import "math"

// gaps remember which intervals a page has known, since a much longer one is more often a wrong clock
// than a crawler that paused: the longest interval so far, in half octaves of a second, and the doubt
// after a visit that is earlier than the one before it, or years later.
type gaps uint8

// One of the two had a wrong clock, and the next visit tells which: if the earlier one is wrong, the
// time until then is too long, and otherwise the interval before was.
const (
	tookRest  gaps = 1 << 6 // the time is taken out of the intervals that were not quiet
	doubtful  gaps = 2 << 6 // nothing is: no interval before can have been so much too long, or it was not counted
	tookQuiet gaps = 3 << 6 // the time is taken out of the quiet intervals

	longestMask = 1<<6 - 1

	// mostGrowth is how many times longer than all before an interval may be. It is more than Bayes
	// grows in one step. MLE grows faster before the first change, but does not use the belief.
	mostGrowth = 8

	// firstLongest stands for the longest interval before the first one, in seconds.
	firstLongest = 32 * day
)

// longest returns the longest interval so far, in seconds.
func (g gaps) longest() uint32 {
	if n := g.certain(); n > 0 {
		return uint32(min(math.Exp2(float64(n)/2), math.MaxUint32))
	}
	return firstLongest
}

// bound returns the seconds beyond which an interval is suspicious.
func (g gaps) bound() uint32 {
	return uint32(min(mostGrowth*uint64(g.longest()), math.MaxUint32))
}

// observe returns g after an interval that counts. A longer one lengthens it up to the bound only, so
// that only several of them make such intervals usual.
func (g gaps) observe(gap uint32) gaps {
	n := gaps(math.Ceil(2 * math.Log2(float64(max(min(gap, g.bound()), 2)))))
	return max(g.certain(), min(n, longestMask))
}

// certain returns g without doubt.
func (g gaps) certain() gaps { return g & longestMask }

// doubt returns that of g.
func (g gaps) doubt() gaps { return g &^ longestMask }
