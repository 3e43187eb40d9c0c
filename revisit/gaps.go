package revisit

import "math"

// gaps remember which intervals a page has known, since a much longer one is more often a wrong clock
// than a crawler that paused: the longest interval so far, in half octaves of a second, and two flags.
type gaps uint8

const (
	ahead  gaps = 1 << 6 // the last interval was beyond the bound: its clock may have been ahead
	behind gaps = 1 << 7 // the clock of the last visit was behind: a long interval after it is none

	longestMask = 1<<6 - 1

	// mostGrowth is how many times longer than all before an interval may be. It is more than Bayes
	// grows in one step. MLE grows faster before the first change, but does not use the belief.
	mostGrowth = 8

	// firstLongest stands for the longest interval before the first one, in seconds.
	firstLongest = 32 * day
)

// bound returns the seconds beyond which an interval is suspicious.
func (g gaps) bound() uint32 {
	longest := float64(firstLongest)
	if n := g & longestMask; n > 0 {
		longest = math.Exp2(float64(n) / 2)
	}
	return uint32(min(mostGrowth*longest, math.MaxUint32))
}

// observe returns g after an interval that counts. A longer one lengthens it up to the bound only, so
// that only several of them make such intervals usual.
func (g gaps) observe(gap uint32) gaps {
	bound := g.bound()
	n := gaps(math.Ceil(2 * math.Log2(float64(max(min(gap, bound), 2)))))
	longest := max(g&longestMask, min(n, longestMask))
	if gap > bound {
		longest |= ahead
	}
	return longest
}

// forget returns g without flags.
func (g gaps) forget() gaps { return g & longestMask }
