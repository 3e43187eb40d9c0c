package revisit

import (
	"math"
	"time"
)

// Defaults of [Bayes]. At this price and fairness, a page that changes daily is visited every 1.7
// days, one that changes every three weeks about as often as it changes, and one that changes once
// a year almost twice a year.
const (
	DefaultPrice = 0.5
	DefaultFair  = 0.25
)

// Bayes visits a page as soon as a visit is worth its price. The worth is the expected number of
// versions that one more visit at this point catches in the long run, over all rates of change that
// the page may have: see [Bayes.Worth]. If the rates were known, then one price for all pages would
// catch the most versions that so many visits can catch.
//
// It believes changes less than a Poisson process would have it, the less the fewer it saw: real
// pages change in bursts. And it values pages of which it knows little above their worth, since a
// visit also teaches.
type Bayes struct {
	// Price is the one dial between cost and coverage: what a visit costs, in versions of a page
	// that changes daily. 0 means DefaultPrice; what makes sense lies between 0.01 and 5.
	Price float64

	// Fair is by how much slow pages count more: a version counts as the page's mean interval in
	// days, to this power. 0 means DefaultFair, negative means that all versions count alike; with
	// 1, all pages do. A little costs no versions on most logs, since slow pages are those of which
	// too little is known.
	Fair float64

	Prior Prior         // what is known before the first visit; its zero value is the usual
	Min   time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max   time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Next returns the time after which a visit is worth the price.
func (b Bayes) Next(h History) time.Duration {
	if h.last == 0 {
		return 0
	}
	lo, hi := bounds(b.Min, b.Max)
	price := float32(orElse(b.Price, DefaultPrice))
	p := b.values(h)
	from, _ := position(lo.Seconds())
	to, _ := position(hi.Seconds())
	to++
	if worthAt(&p, from) >= price {
		return lo
	}
	if !(worthAt(&p, to) >= price) { // also for a price that is no number
		return hi
	}
	for to-from > 1 { // worthAt(from) < price <= worthAt(to)
		if mid := (from + to) / 2; worthAt(&p, mid) < price {
			from = mid
		} else {
			to = mid
		}
	}
	below, above := worthAt(&p, from), worthAt(&p, to)
	s := timeAt(from, (price-below)/(above-below))
	return min(max(seconds(s), lo), hi)
}

// Worth returns what a visit is worth when so much time has passed since the last one, in the unit
// of Price. It grows with the time, and reaches Price after Next. Where more is due than can be
// visited, the most worthy first catches the most versions if pages change on their own.
func (b Bayes) Worth(h History, waited time.Duration) float64 {
	if h.last == 0 {
		return math.Inf(1)
	}
	p := b.values(h)
	return worthAfter(&p, waited)
}

// worthAfter is Worth for the values of a page.
func worthAfter(p *[cells]float32, waited time.Duration) float64 {
	s := min(max(waited.Seconds(), 1), century.Seconds())
	at, share := position(s)
	below, above := worthAt(p, at), worthAt(p, at+1)
	return float64(below + share*(above-below))
}

// Told returns what a visit is worth when somebody says that the page has changed since the last
// one, and is right with a probability of trust: a lastmod in a sitemap, an entry in a feed, a
// ping. A visit is due when it reaches the Price. How far a host is to be trusted is for the caller
// to count: it is the share of its hints after which a visit found a change.
func (b Bayes) Told(h History, waited time.Duration, trust float64) float64 {
	if h.last == 0 {
		return math.Inf(1)
	}
	p := b.values(h)
	worth := worthAfter(&p, waited)
	if !(trust > 0) {
		return worth
	}
	certain := worthAfter(&p, century) // as good as any time that surely holds a change
	return worth + min(trust, 1)*(certain-worth)
}

// worthAt adds up the gains of all rates at one position of the tables.
func worthAt(values *[cells]float32, at int) (sum float32) {
	table := gains[at : at+(cells-1)*perCell+1]
	for k, v := range values {
		sum += v * table[k*perCell]
	}
	return sum
}

// How much of the evidence counts: so much, and more with each change that was seen. The numbers
// were found on real logs; see the laboratory's README.md.
const (
	trustFirst  = 0.4
	trustChange = 0.03
	trustMost   = 0.95
)

// curiosity is by how much not knowing the rate raises the worth: e to the power of it for each
// cell of standard deviation.
const curiosity = 0.2 * cellOctave

// values returns, for each rate, its probability times what a version at that rate counts.
func (b Bayes) values(h History) (p [cells]float32) {
	prior := b.Prior.orUsual()
	trust := float32(min(trustFirst+trustChange*float64(h.changes), trustMost))
	var sum, mean, square float32
	for k, v := range h.belief {
		w := prior.weight[k] * weights[uint8(float32(v)*trust+0.5)]
		p[k] = w
		sum += w
		mean += w * float32(k)
		square += w * float32(k*k)
	}
	mean /= sum
	deviation := math.Sqrt(float64(max(square/sum-mean*mean, 0)))
	scale := float32(math.Exp(curiosity*deviation)) / sum
	fair := defaultWorth
	if b.Fair != 0 {
		fair = worthOfVersions(max(b.Fair, 0))
	}
	for k := range p {
		p[k] *= scale * fair[k]
	}
	return p
}

// defaultWorth saves the powers in the common case.
var defaultWorth [cells]float32

// worthOfVersions returns what a version counts at each rate.
func worthOfVersions(fair float64) (worth [cells]float32) {
	for k := range worth {
		worth[k] = float32(math.Pow(rates[k]*day, -fair))
	}
	return worth
}
