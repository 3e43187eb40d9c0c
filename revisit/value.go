package revisit

import (
	"math"
	"time"
)

// How evidence counts. These are round numbers, and results depend little on them: chosen on one
// half of the pages of real logs, others do no better on the other half. See the laboratory's
// README.md.
const (
	// trust is the share of the evidence that counts. Changes that come in bursts say less about
	// the rate than changes at random.
	trust = 0.7

	// steady is the share of the evidence in the sums of a History, which never forget, and
	// steadyMost how many bits it may speak against any rate. The belief alone cannot tell rates
	// apart that lie between two cells, because forgetting bounds what each cell can say.
	steady     = 0.5
	steadyMost = 4

	// steadyFrom is how many changes it takes for the sums to say more than the belief. With fewer,
	// many rates are likely, and a finer look at the best of them would be wasted.
	steadyFrom = 3

	// near is how far from the best cell, in cells, the points between cells matter. Further off, the
	// sums of three changes speak against a rate as much as they ever may.
	near = 2
)

// Points are the rates over which worth is added up: those of the cells at even indices, and one
// between each two of them.
const points = 2*cells - 1

// A value is what visits to one page are worth: for each rate, its weight times what a version at
// that rate counts. Points between the cells from first to last are in use.
type value struct {
	at          [points]float32
	first, last int
	sum         float32 // of the weights, which makes them probabilities
}

// The worth of visits is tabled over log2(x), where x is a rate times a time: so many marks to an
// octave, between which it is taken for a straight line. That is wrong by at most 0.004 versions,
// and saves the search for a time most of its steps. The table reaches from the slowest rate in a
// second to the fastest one in 136 years.
const (
	marksOctave = 3
	marksCell   = 4 // = marksOctave * cellOctave
	marksFrom   = -27
	marks       = 49*marksOctave + 2
	marksPage   = marks - (cells-1)*marksCell // for the slowest rate
	spanMarks   = (cells-1)*marksCell + 1

	// Where an octave is divided in three.
	cubeRoot2, cubeRoot4 = 1.2599210498948732, 1.5874010519681994
)

var (
	gains       [marks]float32                     // gain(x)
	times       [marksPage]float64                 // seconds of each mark, for the slowest rate
	weights     [weightFrom + weightTo + 1]float32 // probability by sixteenths of a bit
	quietBits   [points]float32                    // what a second without a change costs
	meanSeconds [points]float64                    // mean interval
	defaultFair [points]float32                    // saves the divisions in the common case
)

// What the belief, interpolated, and the sums can cost a rate. Between two good cells with bad ones
// around, a cubic falls below zero: by (255+255)/16 at most.
const (
	weightFrom = 32
	weightTo   = 288 + steadyMost*perBit
)

func init() {
	for i := range gains {
		gains[i] = float32(gain(math.Exp2(marksFrom + float64(i)/marksOctave)))
	}
	for i := range times {
		times[i] = math.Exp2(marksFrom+float64(i)/marksOctave) / slowest
	}
	for i := range weights {
		weights[i] = float32(math.Exp2(trust * float64(weightFrom-i) / perBit))
	}
	for i := range quietBits {
		quietBits[i] = float32(steady * perBit * math.Log2E * rateAt(i))
		meanSeconds[i] = 1 / rateAt(i)
	}
	defaultFair = fairness(DefaultFair)
}

// rateAt returns the rate of a point in changes per second.
func rateAt(i int) float64 { return slowest * math.Exp2(float64(i)*cellOctave/2) }

// fairness returns what a version counts at each rate. An interval that is not positive makes all
// of them count alike.
func fairness(fair time.Duration) (counts [points]float32) {
	for i := range counts {
		counts[i] = 1
		if fair > 0 {
			counts[i] = max(1, float32(meanSeconds[i]/fair.Seconds()))
		}
	}
	return counts
}

// gain is what one more visit is worth in versions, at the margin, when a page has changed x times
// on average since the last one. Visits at a rate of r to a page with changes at a rate of l catch
// r(1-exp(-l/r)) versions; the derivative by r depends on x = l/r alone.
func gain(x float64) float64 {
	if x < 1e-3 { // where the difference below loses its digits
		return x * x * (0.5 - x*(1.0/3-x/8))
	}
	return 1 - (1+x)*math.Exp(-x)
}

// value weighs the rates of a page: prior times likelihood, not yet divided by their sum. Most of
// the time of Next goes here and into worth.
func (b *Bayes) value(h *History) (v value) {
	prior, counts := &usual, &defaultFair
	if b.Prior.weight[0] > 0 { // all weights of a prior from Fit are
		prior = &b.Prior
	}
	if b.Fair != 0 {
		own := fairness(b.Fair)
		counts = &own
	}
	if h.changes >= steadyFrom {
		v.refine(h, prior, counts)
		return v
	}
	for k, c := range h.belief {
		w := prior.weight[k] * weights[weightFrom+int(c)]
		v.sum += w
		v.at[2*k] = w * counts[2*k]
	}
	return v
}

// refine weighs the rates with what the sums say, and with points between the cells near the best
// one. The belief remembers the last weeks or months, the sums everything: where they contradict
// each other, the page has changed its ways, and the bound on the sums lets the belief win.
func (v *value) refine(h *History, prior *Prior, counts *[points]float32) {
	const capped = steadyMost * perBit
	best := h.belief.best()
	v.first, v.last = max(best-near, 0), min(best+near, cells-1)
	from := 2 * v.first
	drops := h.drops(from, 2*v.last)
	sum := float32(0)
	for k, c := range h.belief {
		w, cost := prior.weight[k], int(c)+capped
		if k >= v.first && k <= v.last {
			cost = int(c) + drops[2*k-from]
			// A cell shares its width with the points beside it, or the finer part of the grid would
			// count twice.
			if k > v.first {
				w -= prior.weight[k] / 4
			}
			if k < v.last {
				w -= prior.weight[k] / 4
			}
		}
		w *= weights[weightFrom+cost]
		sum += w
		v.at[2*k] = w * counts[2*k]
	}
	for k := v.first; k < v.last; k++ {
		i := 2*k + 1
		w := (prior.weight[k] + prior.weight[k+1]) / 4
		w *= weights[weightFrom+h.belief.between(k)+drops[i-from]]
		sum += w
		v.at[i] = w * counts[i]
	}
	v.sum = sum
}

// best returns the cell that explains the visits best.
func (b *belief) best() (best int) {
	for k, c := range b {
		if c < b[best] {
			best = k
		}
	}
	return best
}

// between returns what the rate between cell k and the next one would hold, on a cubic through four
// cells. Likelihoods are smooth, so that two cells that are equally good have a better rate between
// them; a straight line would never find it.
func (b *belief) between(k int) int {
	before, after := max(k-1, 0), min(k+2, cells-1)
	return (9*(int(b[k])+int(b[k+1])) - int(b[before]) - int(b[after])) / 16
}

// drops returns how much worse than the best one the points from first on explain the sums, in
// sixteenths of a bit: equation 3 of the paper, with the mean of all intervals with a change
// standing for each of them: intervals are alike once a policy has settled on a page. It requires
// that a change was seen.
func (h *History) drops(first, last int) (drops [4*near + 1]int) {
	at := place((h.total - h.quiet) / uint32(h.changes))
	// A faster rate sees at a place what a slower one sees later: between cells, half a cell later.
	misses := [2]*costs{&missCost[at], &missCost[at+perCell/2]}
	changes, quiet := steady*float32(h.changes), float32(h.quiet)
	var sums [len(drops)]float32
	best := float32(math.Inf(1))
	for i := range last - first + 1 {
		point := first + i
		sums[i] = changes*float32(misses[point&1][point/2]) + quietBits[point]*quiet
		best = min(best, sums[i])
	}
	for i, sum := range sums {
		drops[i] = int(min(sum-best, steadyMost*perBit))
	}
	return drops
}

// worth adds up the gains of all rates at a mark of the slowest one. It is what visits are worth
// times the sum of the weights.
func (v *value) worth(mark int) (sum float32) {
	table := (*[spanMarks]float32)(gains[mark:])
	// Two sums side by side: each addition waits for the one before.
	other := float32(0)
	for k := 0; k < cells; k += 2 {
		sum += v.at[2*k] * table[k*marksCell]
		other += v.at[2*k+2] * table[(k+1)*marksCell]
	}
	for k := v.first; k < v.last; k++ {
		other += v.at[2*k+1] * table[k*marksCell+marksCell/2]
	}
	return sum + other
}

// reaches returns the time after which a visit is worth the price, between two marks. If that lies
// outside of them, the result does, too, or is the nearer one.
func (v *value) reaches(price float32, low, high int) float64 {
	price *= v.sum
	below, above := low-1, high+1 // worth less, worth as much: neither is looked at
	var less, more float32
	for above-below > 1 {
		mid := (below + above) / 2
		if w := v.worth(mid); w >= price { // false also for a price that is no number
			above, more = mid, w
		} else {
			below, less = mid, w
		}
	}
	switch {
	case above == low:
		return times[low]
	case below == high:
		return times[high]
	}
	return times[below] + float64((price-less)/(more-less))*(times[above]-times[below])
}

// after returns the worth after some time.
func (v *value) after(waited time.Duration) float64 {
	s := min(max(waited.Seconds(), 1), century.Seconds())
	at := mark(s)
	share := float32((s - times[at]) / (times[at+1] - times[at]))
	below, above := v.worth(at), v.worth(at+1)
	return float64((below + share*(above-below)) / v.sum)
}

// mark returns the last mark that lies not after so many seconds.
func mark(s float64) int {
	fraction, exponent := math.Frexp(s * slowest) // from 0.5 to 1
	at := (exponent - 1 - marksFrom) * marksOctave
	switch {
	case fraction >= cubeRoot4/2:
		return at + 2
	case fraction >= cubeRoot2/2:
		return at + 1
	}
	return at
}
