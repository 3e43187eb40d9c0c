package revisit

import "math"

// A Prior is how many pages change how often, as far as one knows before visiting them. The zero
// Prior is the usual one: most pages change every few months, some every day, a few more often. It
// is a plain value; [Fit] makes one from the pages of a host or of a crawl.
type Prior struct{ weight [cells]float32 }

// usual is a prior for pages of which nothing is known, one weight per rate. It was set by hand on
// a few logs; see the laboratory's README.md. The plateau from a change in ten days to one in a few
// hours matters: if each visit found a change, only the prior tells these rates apart.
var usual = Prior{[cells]float32{
	.05, .1, .25, .2, .12, .08, .07, .07, .05, .005, .002, .002,
}}

func (p Prior) orUsual() Prior {
	if p == (Prior{}) {
		return usual
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
func Fit(pages []History, start Prior) Prior {
	start = start.orUsual().scaled()
	p := start
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
// leaves out what the belief knows beyond: short bursts would make all pages look fast.
func (p Prior) explain(h *History, sum *[cells]float64) {
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

// scaled returns p with weights that add up to 1.
func (p Prior) scaled() Prior {
	sum := float32(0)
	for _, w := range p.weight {
		sum += w
	}
	for k := range p.weight {
		p.weight[k] /= sum
	}
	return p
}
