package pagerank

import "slices"

// again is Fetched for a page that was fetched before.
func (f *Frontier) again(id uint32) {
	n := &f.nodes[id]
	if !f.opts.KeepLinks || n.state&(linked|kept) == linked {
		f.give(f.clean, 0)
		return
	}
	f.targets = f.links.read(f.places[id], id, f.targets[:0])
	if n.state&kept != 0 && len(f.targets) == 0 {
		f.give(f.clean, 0) // the spill is broken: what was passed on stays where it is
		return
	}
	if !f.same() {
		// Taking all back and passing all on costs twice as much as moving the difference, and
		// needs no case for pages that had no links, or have none now.
		f.takeBack(id)
		if len(f.clean) > 0 {
			f.sums.dangling -= n.score
			f.keep(id)
			f.passOn(id)
		}
	} else if len(f.clean) > 0 {
		// Whoever fetches a page again wants to know: what has come since goes on, whatever the cutoff.
		f.spread(id, n.score-f.passed[id])
	}
	f.settle()
	if f.links.wasteful() {
		f.repack()
	}
}

// same tells whether f.targets, which is sorted, has the ids in f.clean.
func (f *Frontier) same() bool {
	now := slices.Clone(f.clean) // its order is that of ties, which is of use still
	slices.Sort(now)
	return slices.Equal(now, f.targets)
}

// takeBack makes a page one without links; f.targets are those that it had.
func (f *Frontier) takeBack(id uint32) {
	n := &f.nodes[id]
	if n.state&linked == 0 {
		return
	}
	f.sums.book(n.score-f.passed[id], 0)
	f.sums.dangling += n.score
	f.links.drop(f.places[id])
	n.state &^= linked | kept
	// Only the first round is taken back at once. The targets are in debt then for what they have
	// passed on, and the cutoff decides when they take that back.
	back := f.passed[id]
	f.passed[id], f.places[id] = 0, 0
	f.calm(id)
	f.give(f.targets, -back*f.rate(n.host)/float64(len(f.targets)))
}

// repack copies the lists that are in use to a new arena.
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
