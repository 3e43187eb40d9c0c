package pagerank

import (
	"math"
	"slices"
)

// sums are kept so that the bounds in Stats cost nothing. The law that ties them together: all
// scores are what was put in plus what was passed on, less what damping took on the way.
type sums struct {
	known    int     // ids
	updates  uint64  // shares given
	put      float64 // by fetches and by Trust
	total    float64 // of shares: with put, the sum of all scores
	held     float64 // scores of fetched pages
	dangling float64 // those of them without links
	open     float64 // received and not passed on by fetched pages with links, as absolute values
	debt     float64 // the negative part of open, which comes from shares taken back
	skew     float64 // how far VR's shares were from equal ones, as absolute values
	damping  float64 // largest one seen
}

// rate returns the share of a page's score that all its links together pass on.
func (f *Frontier) rate(host uint32) float64 {
	d := f.opts.Damping
	if f.opts.HostDamping != nil {
		d *= min(max(f.opts.HostDamping(host), 0), 1)
	}
	f.sums.damping = max(f.sums.damping, d)
	return d
}

// keep stores the links of a page.
func (f *Frontier) keep(id uint32) {
	f.nodes[id].state |= linked
	if !f.opts.KeepLinks {
		return
	}
	list := f.clean
	if !slices.IsSorted(list) {
		f.targets = append(f.targets[:0], list...)
		slices.Sort(f.targets)
		list = f.targets
	}
	f.places[id] = f.links.put(id, list)
	if f.places[id] != 0 {
		f.nodes[id].state |= kept
	}
}

// passOn gives all of a page's score to the links in f.clean, which are not to be changed by what
// follows from it.
func (f *Frontier) passOn(id uint32) {
	n := &f.nodes[id]
	share := n.score * f.rate(n.host) / float64(len(f.clean))
	if f.opts.KeepLinks {
		f.passed[id] = n.score
		f.calm(id)
	}
	f.hosts.pay(id, f.clean)
	if f.opts.Cutoff == VR {
		f.giveAndTell(share)
		return
	}
	f.give(f.clean, share)
	if f.opts.Cutoff == PL {
		n.state |= waiting // breadth first: each page once, and this one was
		f.enqueue(f.clean, share)
		f.goOn()
		f.nodes[id].state &^= waiting
	}
}

// giveAndTell gives to the links in f.clean and lets those pass it on that it means much to.
func (f *Frontier) giveAndTell(share float64) {
	f.before = f.before[:0]
	for _, to := range f.clean {
		f.before = append(f.before, f.nodes[to].score)
	}
	f.give(f.clean, share)
	for i, to := range f.clean {
		if f.nodes[to].state&kept != 0 && f.matters(share, f.before[i]) {
			f.wave = append(f.wave, gain{to, share})
		}
	}
}

// matters is VR's rule, for a share and the score that it comes to. A share of nothing would go round
// a cycle of pages without scores for ever.
func (f *Frontier) matters(share, score float64) bool {
	return share > 0 && share >= f.opts.Threshold*math.Abs(score)
}

// give adds a share to the score of each of ids.
//
// This is where a crawl spends its time, and most of that goes into waiting for memory. So a node,
// which is all that most links touch, says from which level on something has to be done: a queued
// id below it stays in its bucket, and a fetched page below it has nothing to pass on yet.
func (f *Frontier) give(ids []uint32, share float64) {
	nodes, weight, blended := f.nodes, float64(f.step), f.hosts.weights != nil
	back := !(share >= 0) // less may become of a page than it has passed on
	ends, passers := 0, 0
	for _, id := range ids {
		n := &nodes[id]
		n.score += share
		switch n.state & (queued | fetched | linked) {
		case queued:
			key := n.score * weight
			if blended {
				key = float64(f.hosts.blend(float32(key), n.host, id))
			}
			if level := levelOf(key); level >= n.next || back && level+1 < n.next {
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
			f.notice(id)
		}
	}
	f.sums.updates += uint64(len(ids))
	f.sums.total += share * float64(len(ids))
	f.sums.held += share * float64(ends+passers)
	f.sums.dangling += share * float64(ends)
	f.sums.open += share * float64(passers)
}

// notice does what follows when an id has got something that is neither queued nor fetched.
func (f *Frontier) notice(id uint32) {
	n := &f.nodes[id]
	switch {
	case n.state&known == 0:
		f.meet(id)
		f.found(id)
	case n.state&aside != 0:
		if level := f.level(id); level >= n.next {
			f.hosts.unpark(f.nodes, id)
			f.queue.add(f.nodes, level, id)
		}
	}
}

// level returns the level of the key of an id that is not fetched; give has it written out.
func (f *Frontier) level(id uint32) uint16 {
	n := &f.nodes[id]
	if f.hosts.weights != nil {
		return levelOf(float64(f.hosts.blend(float32(n.score)*f.step, n.host, id)))
	}
	return levelOf(n.score * float64(f.step))
}

// always is a level that no score reaches.
const always = math.MaxUint16

// calm works out up to which level of its score a fetched page needs no attention when it gets
// something: there, what it has not passed on stays positive and, with AR and Push, below the
// threshold. s-p > Threshold*s is s > p/(1-Threshold). On the level that this is on, it is looked at.
func (f *Frontier) calm(id uint32) {
	n := &f.nodes[id]
	n.next = always
	if n.state&linked == 0 || !f.opts.KeepLinks {
		return
	}
	passed := f.passed[id]
	switch {
	case n.score < passed:
		n.next = 0
	case f.thrifty && f.opts.Threshold < 1:
		n.next = levelOf(passed / (1 - f.opts.Threshold))
	}
}

// owe books that a fetched page with links has got an amount, which give counts among what is open,
// and lets AR and Push decide.
func (f *Frontier) owe(id uint32, amount float64) {
	if !f.opts.KeepLinks {
		return
	}
	rest := f.nodes[id].score - f.passed[id]
	f.sums.book(rest-amount, rest)
	f.sums.open -= amount
	f.calm(id) // it may have come into debt, or out of it
	if f.thrifty {
		f.consider(id)
	}
}

// book replaces what a page has to pass on.
func (s *sums) book(before, after float64) {
	s.open += math.Abs(after) - math.Abs(before)
	s.debt += max(-after, 0) - max(-before, 0)
}
