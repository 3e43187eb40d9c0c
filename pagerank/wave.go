package pagerank

import "math"

// settle lets the pages in the wave pass on their residuals, first in, first out, until the cutoff
// permits no more.
func (f *Frontier) settle() {
	for done := 0; done < len(f.wave); done++ {
		id := f.wave[done]
		f.nodes[id].state &^= waiting
		if f.mayPush() {
			f.spread(id)
			f.sums.credit -= pushPrice * int64(len(f.targets))
		}
		// A long wave must not keep processed ids. Cutting it at half moves each id at most once.
		if done >= longWave && done >= len(f.wave)/2 {
			f.wave = append(f.wave[:0], f.wave[done+1:]...)
			done = -1
		}
	}
	f.wave = f.wave[:0]
	f.sweep()
}

// sweep drops stale entries of the queue when there are too many.
func (f *Frontier) sweep() {
	if f.queue.crowded(len(f.nodes)) {
		f.queue.sweep(f.nodes)
	}
}

// longWave is the length from which on the front of a wave is cut off.
const longWave = 1 << 16

// mayPush reports whether there is credit for residuals. Each link of a fetched page earns one
// unit, and each link that a residual goes over costs pushPrice. So with Push a page costs the same
// on a dense graph as on a sparse one. A residual that has to stay gets its chance at the page's
// next gain.
func (f *Frontier) mayPush() bool {
	return f.opts.Cutoff != Push || f.sums.credit >= 0
}

// pushPrice bounds the cost of residuals to half of that of the links of fetched pages, plus the last
// one, which may exceed the credit.
const pushPrice = 2

// Refine passes on residuals until Stats.Error is at most within, and reports whether it is. The
// cost depends on how much the error has to shrink. A crawl may use rough scores, and refine them
// only when it needs good ones or a good Stats.Mass. Without kept links, or with Damping 1, Refine
// can do nothing.
func (f *Frontier) Refine(within float64) (ok bool) {
	if f.opts.Damping >= 1 || !f.keeps() {
		return f.sums.distance() <= within
	}
	// This is AR with a threshold that is halved repeatedly: large residuals go first, and what
	// they add to others is passed on together with theirs.
	opts, credit := f.opts, f.sums.credit // it has no budget
	defer func() {
		f.opts, f.sums.credit = opts, credit
		f.calmAll()
	}()
	const finest = 1e-15 // near the precision of float64
	for part := 0.5; f.sums.distance() > within && part > finest; part /= 2 {
		f.opts.Cutoff, f.opts.Threshold = AR, part
		f.calmAll()
		for id := range f.nodes {
			f.consider(uint32(id))
		}
		f.settle()
	}
	return f.sums.distance() <= within
}

// calmAll recomputes when fetched pages need attention, after the threshold has changed.
func (f *Frontier) calmAll() {
	for id := range f.nodes {
		if f.nodes[id].state&fetched != 0 {
			f.calm(uint32(id))
		}
	}
}

// consider adds a page to the wave if its residual is above the threshold.
func (f *Frontier) consider(id uint32) {
	n := &f.nodes[id]
	if n.state&(kept|waiting) != kept {
		return
	}
	if rest := n.score - f.passed[id]; math.Abs(rest) > f.opts.Threshold*math.Abs(n.score) {
		n.state |= waiting
		f.wave = append(f.wave, id)
	}
}

// spread passes on the residual of a page over its links.
func (f *Frontier) spread(id uint32) {
	f.targets = f.links.read(f.places[id], id, f.targets[:0])
	n := &f.nodes[id]
	rest := n.score - f.passed[id]
	f.passed[id] = n.score
	f.calm(id)
	f.sums.replace(rest, 0)
	f.give(f.targets, rest*f.opts.Damping/float64(len(f.targets)))
}
