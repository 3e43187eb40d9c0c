package pagerank

import "math"

// A gain is what a page has got and may pass on. AR and Push need no amount: they pass on all that
// is open when it is the page's turn.
type gain struct {
	id     uint32
	amount float64
}

// goOn is PL: the pages in the wave pass on what they have just got, and others join it until it is
// long enough.
func (f *Frontier) goOn() {
	for done := 0; done < len(f.wave); done++ {
		f.spread(f.wave[done].id, f.wave[done].amount)
	}
	for _, g := range f.wave {
		f.nodes[g.id].state &^= waiting
	}
	f.wave = f.wave[:0]
}

// settle lets the pages in the wave of VR, AR and Push pass on what they have, first come first
// served, until the cutoff is content.
func (f *Frontier) settle() {
	if f.opts.Cutoff == PL {
		f.goOn()
	}
	for done := 0; done < len(f.wave); done++ {
		g := f.wave[done]
		f.nodes[g.id].state &^= waiting
		if f.opts.Cutoff == VR {
			f.spreadWhereItMatters(g.id, g.amount)
		} else {
			f.spread(g.id, f.nodes[g.id].score-f.passed[g.id])
		}
		// A wave that goes on for long would keep all that was ever in it. To cut when half is done
		// moves each gain once at most.
		if done >= longWave && done >= len(f.wave)/2 {
			f.wave = append(f.wave[:0], f.wave[done+1:]...)
			done = -1
		}
	}
	f.wave = f.wave[:0]
	if f.queue.crowded(len(f.nodes)) {
		f.queue.sweep(f.nodes)
	}
}

// Refine passes on what is open until Stats.Error is at most within, and tells whether it is. It costs
// as much as the error is to shrink, so that a crawl may run with rough scores and be asked for good
// ones, and for a good bound on their mass, now and then. Without links, and with Damping 1, there
// is nothing that it can do; what VR has ignored stays a part of the error.
func (f *Frontier) Refine(within float64) (ok bool) {
	if f.sums.damping >= 1 || !f.opts.KeepLinks {
		return f.sums.distance() <= within
	}
	// AR with a threshold that is halved again and again: large rests go first, and what they bring
	// to others is passed on together with what those had.
	opts, thrifty := f.opts, f.thrifty
	defer func() {
		f.opts, f.thrifty = opts, thrifty
		f.calmAll()
	}()
	f.opts.Cutoff, f.thrifty = AR, true
	const finest = 1e-15 // float64 ends here
	for part := 0.5; f.sums.distance() > within && part > finest; part /= 2 {
		f.opts.Threshold = part
		f.calmAll()
		for id := range f.nodes {
			f.consider(uint32(id))
		}
		f.settle()
	}
	return f.sums.distance() <= within
}

// calmAll works out anew when fetched pages need attention, for the threshold has changed.
func (f *Frontier) calmAll() {
	for id := range f.nodes {
		if f.nodes[id].state&fetched != 0 {
			f.calm(uint32(id))
		}
	}
}

// consider lets a page join the wave of AR and Push if it has enough to pass on.
func (f *Frontier) consider(id uint32) {
	n := &f.nodes[id]
	if n.state&(kept|waiting) != kept {
		return
	}
	if rest := n.score - f.passed[id]; math.Abs(rest) > f.opts.Threshold*math.Abs(n.score) {
		n.state |= waiting
		f.wave = append(f.wave, gain{id: id})
	}
}

// longWave is when the front of a wave is cut off.
const longWave = 1 << 16

// spread passes an amount on over all links of a page.
func (f *Frontier) spread(id uint32, amount float64) {
	f.targets = f.links.read(f.places[id], id, f.targets[:0])
	if len(f.targets) == 0 {
		return // the spill is broken: the rest stays open, and the stated error says so
	}
	n := &f.nodes[id]
	rest := n.score - f.passed[id]
	f.passed[id] += amount
	f.calm(id)
	f.sums.book(rest, n.score-f.passed[id])
	share := amount * f.rate(n.host) / float64(len(f.targets))
	f.give(f.targets, share)
	if f.opts.Cutoff == PL {
		f.enqueue(f.targets, share)
	}
}

// enqueue lets pages join the wave of PL, as long as there is room.
func (f *Frontier) enqueue(ids []uint32, share float64) {
	for _, id := range ids {
		if len(f.wave) >= f.opts.Pages {
			return
		}
		if n := &f.nodes[id]; n.state&(kept|waiting) == kept {
			n.state |= waiting
			f.wave = append(f.wave, gain{id, share})
		}
	}
}

// spreadWhereItMatters is spread with VR's rule. What a target ignores stays with the page.
func (f *Frontier) spreadWhereItMatters(id uint32, amount float64) {
	f.targets = f.links.read(f.places[id], id, f.targets[:0])
	n := &f.nodes[id]
	share := amount * f.rate(n.host) / float64(len(f.targets))
	taken := 0
	for i, to := range f.targets {
		t := &f.nodes[to]
		if !f.matters(share, t.score) {
			continue
		}
		if t.state&kept != 0 {
			f.wave = append(f.wave, gain{to, share})
		}
		f.give(f.targets[i:i+1], share)
		taken++
	}
	if taken > 0 {
		// The page has passed on a part, as if to all; how far off that is for each is the skew.
		rest := n.score - f.passed[id]
		part := float64(taken) / float64(len(f.targets))
		f.passed[id] += amount * part
		f.calm(id)
		f.sums.book(rest, n.score-f.passed[id])
		f.sums.skew += 2 * amount * f.rate(n.host) * part * (1 - part)
	}
}
