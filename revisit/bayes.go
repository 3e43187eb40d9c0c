package revisit

import (
	"cmp"
	"math"
	"time"
)

// Bayes visits a page as soon as a visit is worth its price. The worth is the expected number of
// versions that one more visit at this point catches in the long run, over all rates of change that
// the page may have: see [Bayes.Worth]. If the rates were known, a single price for all pages would
// catch the most versions for a given number of visits.
//
// Bayes assumes that each page has a rate of change, and that it can switch to any other rate at
// any time. It discounts its evidence, because real pages change in bursts rather than at random.
type Bayes struct {
	// Price trades cost against coverage: the cost of a visit, in versions of a page that changes
	// daily. 0 means DefaultPrice; useful values lie between 0.01 and 5.
	//
	// A page whose versions are w times as important is visited as if its price were Price/w, which
	// is also the optimum for freshness (Azar et al., "Tractable near-optimal policies for
	// crawling", PNAS 2018).
	Price float64

	// Fair is the mean interval beyond which all pages count alike: each version of a page that
	// changes less often gets more weight, as if the page changed that often. It matters for pages
	// of which little is known. For example, a page that was quiet in its first 100 days is next
	// visited after 70 days, and without Fair after 150. If visits are scarce and most pages never
	// change, a negative value is better. 0 means DefaultFair, negative means that all versions
	// count alike.
	Fair time.Duration

	Prior Prior         // before the first visit; the zero Prior is the usual one
	Min   time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max   time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Next returns the time after which a visit is worth the price. The worth grows with time, so there
// is one such time. If it is out of bounds, Next returns the nearer bound.
func (b Bayes) Next(h History) time.Duration {
	if h.last == 0 {
		return within(0, b.Min, b.Max)
	}
	v := b.count(h.posterior(&b.Prior))
	return within(v.reach(cmp.Or(b.Price, DefaultPrice)), b.Min, b.Max)
}

// Worth returns what a visit is worth after waiting some time since the last one, in the unit of
// Price. It grows with the time, and reaches Price after Next, within a fiftieth: a caller that
// sleeps until then should visit the page without asking again. If more pages are due than can be
// visited, visiting those of the greatest worth first catches the most versions.
func (b Bayes) Worth(h History, waited time.Duration) float64 {
	return b.Hinted(h, waited, Hints{}, 0)
}

// Hinted returns what a visit is worth if the host gave n hints since the last visit that the page
// has changed: a lastmod in a sitemap, an entry in a feed, a ping. The more reliable the host, the
// more a hint adds, and the less a visit is worth without one, because silence is information too.
// Hints also show how fast the page changes before visits do. A visit is due when its worth reaches
// Price.
//
// This is the crawl value with noisy signals of Busa-Fekete et al. (GREEDY-NCIS, WWW 2025,
// arXiv:2502.02430), for versions caught instead of freshness. It takes up to a few microseconds.
func (b Bayes) Hinted(h History, waited time.Duration, host Hints, n int) (worth float64) {
	if h.last == 0 {
		return math.Inf(1)
	}
	seconds := min(max(waited.Seconds(), 1), century.Seconds())
	n = max(n, 0)
	chances := h.posterior(&b.Prior)
	host.hear(&chances, b.Prior.orUsual(), seconds, n)
	v := b.count(chances)
	recall, wrong := host.reliability()
	for k, rate := range rates {
		worth += v[k] * signals{rate, recall, wrong}.gain(seconds, n)
	}
	return worth
}

// gain is the marginal worth of one more visit, in versions, to a page that has changed x times on
// average since the last one. Visits at a rate of r to a page with changes at a rate of l catch
// r(1-exp(-l/r)) versions; the derivative with respect to r depends on x = l/r alone.
func gain(x float64) float64 {
	if x < 1e-3 { // avoids cancellation in the difference below
		return x * x * (0.5 - x*(1.0/3-x/8))
	}
	return 1 - (1+x)*math.Exp(-x)
}

// gains tables gain at marks, markOctave to an octave, starting at one second at the slowest rate.
// The gains of two neighboring cells are markOctave entries apart.
var gains [marks + (cells-1)*markOctave]float64

const (
	markOctave = 4
	markFrom   = missFrom
	marks      = 33*markOctave + 1 // up to 136 years
)

func init() {
	for i := range gains {
		gains[i] = gain(math.Exp2(markFrom + float64(i)/markOctave))
	}
}

// values are, for each rate, its probability times the weight of a version at that rate.
type values [cells]float64

// count turns probabilities into values.
func (b *Bayes) count(v [cells]float64) values {
	if fair := cmp.Or(b.Fair, DefaultFair).Seconds(); fair > 0 {
		for k, rate := range rates {
			v[k] /= min(rate*fair, 1)
		}
	}
	return v
}

// at returns the worth at a mark. Two sums need not wait for each other.
func (v *values) at(mark int) float64 {
	var even, odd float64
	table := gains[mark : mark+(cells-1)*markOctave+1]
	for k := 0; k < cells; k += 2 {
		even += v[k] * table[k*markOctave]
		odd += v[k+1] * table[(k+1)*markOctave]
	}
	return even + odd
}

// reach returns the seconds after which the worth reaches a price. Between two marks it
// interpolates, with an error of at most 0.005 versions.
func (v *values) reach(price float64) float64 {
	low, high := 0, marks-1
	for high-low > 1 {
		if mid := (low + high) / 2; v.at(mid) >= price { // false also for NaN
			high = mid
		} else {
			low = mid
		}
	}
	below, above := v.at(low), v.at(high)
	if !(price < above) {
		return math.Inf(1)
	}
	share := max(0, (price-below)/(above-below))
	return math.Exp2(markFrom+(float64(low)+share)/markOctave) / slowest
}

// How evidence counts. These are round numbers, and results depend little on them: numbers chosen
// on one half of the pages of real logs do no better on the other half. See the laboratory's
// README.md.
const (
	// trust is the share of the evidence that counts. Changes in bursts say less about the rate
	// than changes at random.
	trust = 0.7

	// steady is the share of the evidence in the sums of a History, which never forget. steadyMost
	// is how many bits it may count against any rate. The belief alone is too coarse, because
	// forgetting bounds the difference between neighboring cells.
	steady     = 0.5
	steadyMost = 4

	// steadyFrom is how many changes it takes for the sums to be more precise than the belief.
	steadyFrom = 3
)

// posterior returns the probability of each rate: prior times likelihood.
func (h *History) posterior(p *Prior) (weights [cells]float64) {
	prior := p.orUsual()
	against := h.steadyBits()
	sum := 0.0
	for k, c := range h.belief {
		weights[k] = float64(prior.weight[k]) * exp2(-trust*(float64(c)/perBit+against[k]))
		sum += weights[k]
	}
	for k := range weights {
		weights[k] *= 1 / sum
	}
	return weights
}

// steadyBits returns how much worse than the best rate each rate explains the sums, in bits. It
// uses equation 3 of the paper, with the mean of all intervals that had a change in place of each
// of them; they are similar once a policy has settled on a page. The belief remembers the last
// weeks or months, the sums everything. If they contradict each other, the page has changed its
// behavior, and the bound lets the belief win.
func (h *History) steadyBits() (bits [cells]float64) {
	if h.changes < steadyFrom {
		return bits
	}
	changes, quiet := float64(h.changes), float64(h.quiet)
	miss := missCost(float64(h.total-h.quiet) / changes)
	best := math.Inf(1)
	for k, rate := range rates {
		bits[k] = steady * (changes*miss[k*missOctave] + rate*quiet*math.Log2E)
		best = min(best, bits[k])
	}
	for k := range bits {
		bits[k] = min(bits[k]-best, steadyMost)
	}
	return bits
}
