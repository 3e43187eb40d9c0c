package main

import "math"

// Numbers are the parameters of Bayes that no theory determines. The library has them as constants.
// Here they can be varied, to measure their effect, and to choose them on some pages and evaluate
// them on others.
type numbers struct {
	fair   float64 // days: pages that change less often than this count alike
	trust  float64 // share of the evidence that counts
	wake   float64 // probability per day that a page gets a new rate
	steady float64 // share of the evidence in the sums that counts; the sums never fade
}

// chosen are the numbers of the library.
var chosen = numbers{fair: 30, trust: 0.7, wake: 0.001, steady: 0.5}

// The model's rates are those of the library, an octave apart, and times a twelfth of one.
const (
	modelRates     = 16
	modelSlowest   = 1.0 / 1024 // changes per day
	marksPerOctave = 12

	firstMark  = -10 * marksPerOctave // a minute and a half
	lastMark   = 9 * marksPerOctave   // 512 days
	modelMarks = lastMark - firstMark + (modelRates-1)*marksPerOctave + 1
)

// modelPrior is the usual prior of the library.
var modelPrior = [modelRates]float64{
	.02, .05, .15, .5, 1, 1, 1, 1, 1, 1, .3, .1, .05, .02, .01, .01,
}

var (
	modelRate  [modelRates]float64 // changes per day
	modelGains [modelMarks]float64
)

func init() {
	for i := range modelRate {
		modelRate[i] = modelSlowest * math.Exp2(float64(i))
	}
	for i := range modelGains {
		modelGains[i] = gain(modelSlowest * math.Exp2(float64(firstMark+i)/marksPerOctave))
	}
}

// A belief is the model's memory of a page: that of the library without its compact encoding, its
// table of costs, and constants that are on disk.
type belief struct {
	bits         [modelRates]float64 // how much worse than the best each rate explains the visits
	total, quiet float64             // days
	changes      float64
}

// modelled is Bayes in plain floats, with the given parameters.
func modelled(n numbers, price float64) strategy {
	next := func(t *track) float64 {
		if t.belief == nil {
			t.belief = new(belief)
		} else {
			gap := t.gaps[len(t.gaps)-1]
			t.belief.observe(inDays(gap.Length), gap.Changed, n.wake)
			t.gaps = t.gaps[:0]
		}
		return t.belief.wait(n, price)
	}
	return strategy{name: "Bayes in plain numbers", next: next, gaps: true}
}

// observe adds a visit. Fading comes first: the page may have got a new rate before the visit.
func (b *belief) observe(gap float64, changed bool, wake float64) {
	woke := wake * gap / (1 + wake*gap)
	best := math.Inf(1)
	for i, rate := range modelRate {
		x := rate * gap
		cost := x * math.Log2E
		if changed {
			cost = -math.Log2(-math.Expm1(-x))
		}
		b.bits[i] = cost - math.Log2(math.Exp2(-b.bits[i])+woke)
		best = min(best, b.bits[i])
	}
	for i := range b.bits {
		b.bits[i] -= best
	}
	b.total += gap
	if changed {
		b.changes++
	} else {
		b.quiet += gap
	}
}

// wait returns the days after which a visit is worth the price.
func (b *belief) wait(n numbers, price float64) float64 {
	worths := b.weigh(n)
	sum := 0.0
	for i, w := range worths {
		sum += w
		worths[i] *= max(1, 1/(modelRate[i]*n.fair))
	}
	price *= sum
	low, high := 0, lastMark-firstMark
	for low < high {
		if mid := (low + high) / 2; worthAt(&worths, mid) < price {
			low = mid + 1
		} else {
			high = mid
		}
	}
	days := markDays(low)
	if above, below := worthAt(&worths, low), worthAt(&worths, max(low-1, 0)); above > below {
		days -= min(max((above-price)/(above-below), 0), 1) * (days - markDays(max(low-1, 0)))
	}
	return min(max(days, 1), year)
}

// markDays returns the time of a mark in days.
func markDays(mark int) float64 { return math.Exp2(float64(firstMark+mark) / marksPerOctave) }

// worthAt returns what a visit at a mark is worth.
func worthAt(worths *[modelRates]float64, mark int) (sum float64) {
	for i, w := range worths {
		sum += w * modelGains[mark+i*marksPerOctave]
	}
	return sum
}

// weigh returns the weight of each rate: prior times likelihood, including the sums. Both count for
// less than they would if changes came at random.
func (b *belief) weigh(n numbers) (weights [modelRates]float64) {
	const from = 3 // minimum changes for the sums to count
	var drops [modelRates]float64
	if b.changes >= from && n.steady > 0 {
		drops = b.drops(n.steady)
	}
	for i := range weights {
		weights[i] = modelPrior[i] * math.Exp2(-n.trust*(b.bits[i]+drops[i]))
	}
	return weights
}

// drops returns the bits that the sums count against each rate, 4 at most: if the page has changed
// its behavior, the last visits win.
func (b *belief) drops(steady float64) (drops [modelRates]float64) {
	const most = 4
	mean, best := (b.total-b.quiet)/b.changes, math.Inf(1)
	for i, rate := range modelRate {
		missed := -b.changes * math.Log2(-math.Expm1(-rate*mean))
		drops[i] = steady * (missed + rate*b.quiet*math.Log2E)
		best = min(best, drops[i])
	}
	for i := range drops {
		drops[i] = min(drops[i]-best, most)
	}
	return drops
}
