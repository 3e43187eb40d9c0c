package revisit

import "math"

// A Prior is a distribution of rates of change, for pages that were not visited yet. The zero Prior
// is the usual one: as many pages change every few months as every few weeks or days; hardly any
// are slower or faster. [Fit] makes one from the pages of a host or of a crawl. It is a plain
// value, and is not safe for concurrent use.
type Prior struct{ weight [cells]float32 }

// usual is the prior for unknown pages, one weight per rate. It is the distribution of the paper's
// Figure 4, for 163,122 feeds, halfway to uniform: about as many pages in each octave from a change
// in two months to one in two days, and few beyond.
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
	fitRounds = 10   // of expectation maximization; more rounds only sharpen the result
	fitKeep   = 0.5  // share of the old prior that stays, for kinds of pages not seen yet
	fitDoubt  = 0.5  // of a page's evidence; pages of one host change together
	fitPages  = 5    // weight of the old prior, in pages
	fitLeast  = 0.05 // of the usual prior that stays for each rate, however often a prior is fitted again
)

// Fit returns the prior that explains the histories best, halfway from the given prior: that of the crawl,
// not an earlier result for the same pages, which then would count twice. A few
// hundred pages chosen at random are enough; pages visited at most once are ignored. It allocates
// nothing, and takes a few milliseconds for a thousand pages.
//
// It pays for hosts whose pages are much slower or faster than usual and were visited for months.
// Weeks are not enough: what all pages did lately does not show what each of them usually does.
func Fit(pages []History, start Prior) Prior {
	start, scaled := start.orUsual().scaled(), usual.scaled()
	p := start
	// Each round computes the rates that the pages have under the prior, and takes the result as
	// the next prior. It stops early: the prior of maximum likelihood has a few sharp peaks, and is
	// overconfident.
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
			p.weight[k] = max(float32((found+old*fitPages)/(n+fitPages)), fitLeast*scaled.weight[k])
		}
	}
	return p
}

// explain adds the probabilities of one page's rates to sum. It counts changes over time and
// ignores what else the belief knows: short bursts would make all pages look fast. It adds
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

// scaled returns p with weights that add up to 1, for mixing it with other distributions. All
// stay above 0: those of a Prior from elsewhere may be so small that division gives 0.
func (p *Prior) scaled() (q Prior) {
	sum := float32(0)
	for _, w := range p.weight {
		sum += w
	}
	for k, w := range p.weight {
		q.weight[k] = max(w/sum, math.SmallestNonzeroFloat32)
	}
	return q
}
