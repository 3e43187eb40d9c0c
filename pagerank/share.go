package pagerank

import (
	"math"
	"slices"
)

// sums make the bounds in Stats free to compute. Invariant: the sum of all scores is what was put
// in plus what was passed on, minus what damping removed on the way.
type sums struct {
	known    int     // ids
	updates  uint64  // shares given
	credit   int64   // budget of Push for residuals, see mayPush
	put      float64 // by fetches
	total    float64 // of shares: with put, the sum of all scores
	held     float64 // scores of fetched pages
	dangling float64 // scores of fetched pages without links
	open     float64 // absolute residuals of fetched pages with links
	debt     float64 // the negative ones, from shares taken back
	damping  float64 // Options.Damping
}

// keeps reports whether links are kept.
func (f *Frontier) keeps() bool { return f.opts.Cutoff != DL1 }

// keep stores the links of a page.
func (f *Frontier) keep(id uint32, links []uint32) {
	f.nodes[id].state |= linked
	if !f.keeps() {
		return
	}
	if !slices.IsSorted(links) {
		f.targets = append(f.targets[:0], links...)
		slices.Sort(f.targets)
		links = f.targets
	}
	f.places[id] = f.links.put(id, links)
	if f.places[id] != 0 {
		f.nodes[id].state |= kept
	}
}

// passOn gives all of a page's score to its links.
func (f *Frontier) passOn(id uint32, links []uint32) {
	n := &f.nodes[id]
	share := n.score * f.opts.Damping / float64(len(links))
	if f.keeps() {
		f.passed[id] = n.score
		f.calm(id)
	}
	f.hosts.pay(id, links)
	f.give(links, share)
	f.sums.credit += int64(len(links))
}

// give adds a share to the score of each of ids.
//
// A crawl spends its time here, mostly waiting for memory. Most links touch only the node, so the
// node has the level above which something has to be done. Below it, a queued id stays in its
// bucket, and a fetched page has nothing to pass on yet.
func (f *Frontier) give(ids []uint32, share float64) {
	nodes, weight, plain := f.nodes, float64(f.step), f.hosts.weights == nil && f.opts.Score == nil
	back := !(share >= 0) // keys fall, and residuals may become negative
	ends, passers := 0, 0
	for _, id := range ids {
		n := &nodes[id]
		n.score += share
		switch n.state & (queued | fetched | linked) {
		case queued:
			var level uint16
			if plain {
				level = levelOf(n.score * weight)
			} else {
				level = f.level(id)
			}
			if level >= n.next || back && level+1 < n.next {
				f.queue.move(n, level, id)
			}
		case fetched:
			ends++
		case fetched | linked:
			passers++
			if levelOf(n.score) >= n.next || back {
				f.owe(id, share)
			}
		default:
			f.notice(id, back)
		}
	}
	f.sums.updates += uint64(len(ids))
	f.sums.total += share * float64(len(ids))
	f.sums.held += share * float64(ends+passers)
	f.sums.dangling += share * float64(ends)
	f.sums.open += share * float64(passers)
}

// notice handles a gain, or a loss, of an id that is neither queued nor fetched.
func (f *Frontier) notice(id uint32, back bool) {
	n := &f.nodes[id]
	switch {
	case n.state&known == 0:
		f.meet(id)
		f.found(id)
	case n.state&aside != 0:
		if level := f.level(id); level >= n.next || back && level+1 < n.next {
			f.relocate(n, level, id)
		}
	}
}

// always is a level that no score reaches.
const always = math.MaxUint16

// calm computes the level of its score up to which a fetched page needs no attention when it gains.
// Below it the residual is positive and, with AR and Push, at most the threshold: s-p > T*s is s >
// p/(1-T). On that level itself the page is checked.
func (f *Frontier) calm(id uint32) {
	n := &f.nodes[id]
	n.next = always
	if n.state&linked == 0 || !f.keeps() {
		return
	}
	passed := f.passed[id]
	switch {
	case n.score < passed:
		n.next = 0
	case f.opts.Threshold < 1:
		n.next = levelOf(passed / (1 - f.opts.Threshold))
	}
}

// owe handles an amount that a fetched page with links has received, and that give has added to
// open.
func (f *Frontier) owe(id uint32, amount float64) {
	if !f.keeps() {
		return
	}
	rest := f.nodes[id].score - f.passed[id]
	f.sums.replace(rest-amount, rest)
	f.sums.open -= amount
	f.calm(id) // the residual may have become negative, or positive
	f.consider(id)
}

// replace replaces the residual of a page.
func (s *sums) replace(before, after float64) {
	s.open += math.Abs(after) - math.Abs(before)
	s.debt += max(-after, 0) - max(-before, 0)
}
