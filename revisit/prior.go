package revisit

import "math"

// A Prior is how many pages change how often, as far as one knows before visiting them. The zero
// Prior is the usual one: as many pages change every few months as every few weeks or days; hardly
// any are slower or faster. [Fit] makes one from the pages of a host or of a crawl. It is a plain
// value, and is not safe for concurrent use.
type Prior struct{ weight [cells]float32 }

// usual is a prior for pages of which nothing is known, one weight per rate. It is what the paper's
// Figure 4 says of 163,122 feeds, halfway to indifference: about as many pages to each octave from
// a change in two months to one in two days, and few beyond.
var usual = Prior{[cells]float32{
	.02, .05, .15, .5, 1, 1, 1, 1, 1, 1, .3, .1, .05, .02, .01, .01,
}}

func (p *Prior) orUsual() *Prior {
	if *p == (Prior{}) {
		return &usual
	}
	return p
}

// Parameters of Fit.
const (
	fitRounds = 10  // of expectation and maximization; more only sharpen the result
	fitKeep   = 0.5 // share of the old prior that stays, for pages of a kind not seen yet
	fitDoubt  = 0.5 // of a page's evidence; pages of one host change together
	fitPages  = 5   // as many pages as the old prior counts for on its own
)

// Fit returns the prior that explains the histories best, halfway from the prior given. A few
// hundred pages are enough, chosen at random; pages visited once or never say nothing. It allocates
// nothing, and takes a few milliseconds for a thousand pages.
//
// It pays for hosts whose pages are much slower or faster than usual and were visited for months.
// Weeks teach it nothing: what all pages did lately is not what each of them does.
func Fit(pages []History, start Prior) Prior {
	start = start.orUsual().scaled()
	p := start
	// Each round asks which rates the pages have if the prior is right, and takes the answer for
	// the next prior. It stops early: the best prior of all has a few sharp peaks, and trusts them
	// too much.
	for range fitRounds {
		var sum [cells]float64
		n := 0.0
		for i := range pages {
			if pages[i].visits > 0 {
				n++
				p.explain(&pages[i], &sum)
			}
		}
		for k := range sum {
			old := float64(start.weight[k])
			found := sum[k]*(1-fitKeep) + old*n*fitKeep
			p.weight[k] = float32((found + old*fitPages) / (n + fitPages))
		}
	}
	return p
}

// explain adds the probabilities of the rates of one page to sum. It counts changes over time and
// leaves out what the belief knows beyond: short bursts would make all pages look fast. It adds
// logarithms, since the likelihood of a few hundred visits is below the smallest float.
func (p *Prior) explain(h *History, sum *[cells]float64) {
	var q [cells]float64
	best := math.Inf(-1)
	for k := range q {
		q[k] = fitDoubt * (float64(h.changes)*math.Log(rates[k]) - rates[k]*float64(h.total))
		best = max(best, q[k])
	}
	total := 0.0
	for k := range q {
		q[k] = float64(p.weight[k]) * math.Exp(q[k]-best)
		total += q[k]
	}
	for k := range q {
		sum[k] += q[k] / total
	}
}

// scaled returns p with weights that add up to 1, as Fit needs them to mix priors.
func (p *Prior) scaled() (q Prior) {
	sum := float32(0)
	for _, w := range p.weight {
		sum += w
	}
	for k, w := range p.weight {
		q.weight[k] = w / sum
	}
	return q
}
