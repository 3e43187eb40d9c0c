package pagerank

import "slices"

// again is Fetched for a page that was fetched before.
func (f *Frontier) again(id uint32, links []uint32) {
	n := &f.nodes[id]
	if !f.opts.KeepLinks || n.state&(linked|kept) == linked {
		f.give(links, 0)
		return
	}
	f.targets = f.links.read(f.places[id], id, f.targets[:0])
	if now := slices.Sorted(slices.Values(links)); !slices.Equal(now, f.targets) {
		// Taking back all shares and passing them on again costs twice as much as moving the
		// difference. In return, pages without links, then or now, need no special case.
		f.takeBack(id)
		if len(links) > 0 {
			f.sums.dangling -= n.score
			f.keep(id, links)
			f.passOn(id, links)
		}
	} else if len(links) > 0 {
		f.spread(id) // a fetched page always passes on its residual, whatever the cutoff
	}
	f.settle()
	if f.links.wasteful() {
		f.repack()
	}
}

// takeBack turns a page into one without links. f.targets are the links it had.
func (f *Frontier) takeBack(id uint32) {
	n := &f.nodes[id]
	if n.state&linked == 0 {
		return
	}
	f.sums.replace(n.score-f.passed[id], 0)
	f.sums.dangling += n.score
	f.links.drop(f.places[id])
	n.state &^= linked | kept
	// Only the first step is taken back immediately. The targets then have negative residuals for
	// the shares that they passed on, and the cutoff decides when they take those back.
	back := f.passed[id]
	f.passed[id], f.places[id] = 0, 0
	f.calm(id)
	f.give(f.targets, -back*f.opts.Damping/float64(len(f.targets)))
}

// repack copies the lists in use to a new arena.
func (f *Frontier) repack() {
	var packed linkStore
	for id, at := range f.places {
		if at != 0 {
			f.targets = f.links.read(at, uint32(id), f.targets[:0])
			f.places[id] = packed.put(uint32(id), f.targets)
		}
	}
	f.links = packed
}
