package pagerank

import (
	"math"
	"slices"
)

// sums are kept so that the bounds in Stats cost nothing. The law that ties them together: all
// scores are what was put in plus what was passed on, less what damping took on the way.
type sums struct {
	known    int     // ids
	updates  int     // shares given
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
	f.places[id] = f.links.put(list)
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
	}
	f.hosts.pay(id, f.clean)
	if f.opts.Cutoff == VR {
		f.giveAndTell(share)
		return
	}
	if !f.opts.KeepLinks {
		f.giveAll(f.clean, share)
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
		if f.nodes[to].state&kept != 0 && share >= f.opts.Threshold*f.before[i] {
			f.wave = append(f.wave, gain{to, share})
		}
	}
}

// give adds a share to the score of each of ids. This is where a crawl spends its time.
func (f *Frontier) give(ids []uint32, share float64) {
	f.sums.updates += len(ids)
	f.sums.total += share * float64(len(ids))
	nodes, step, plain := f.nodes, f.step, f.hosts.weights == nil
	for _, id := range ids {
		n := &nodes[id]
		n.score += share
		if n.state&(queued|fetched) != queued {
			f.received(id, share)
			continue
		}
		key := float32(n.score) * step
		if !plain {
			key = f.hosts.blend(key, n.host, id)
		}
		if b := bucketOf(key); b != n.bucket {
			n.bucket = b
			f.queue.push(b, id)
		}
	}
}

// giveAll is give for a DL1 that keeps no links, where fetched pages need no more than be counted.
func (f *Frontier) giveAll(ids []uint32, share float64) {
	ends, passers := 0, 0
	nodes := f.nodes
	for _, id := range ids {
		n := &nodes[id]
		n.score += share
		switch n.state & (queued | fetched | linked) {
		case queued:
			if b := bucketOf(float32(n.score)); b != n.bucket {
				n.bucket = b
				f.queue.push(b, id)
			}
		case fetched:
			ends++
		case fetched | linked:
			passers++
		default:
			f.received(id, share)
		}
	}
	f.sums.updates += len(ids)
	f.sums.total += share * float64(len(ids))
	f.sums.held += share * float64(ends+passers)
	f.sums.dangling += share * float64(ends)
	f.sums.open += share * float64(passers)
}

// bucket returns the bucket of an id now; give has it written out.
func (f *Frontier) bucket(id uint32) uint16 {
	n := &f.nodes[id]
	key := float32(n.score) * f.step
	if f.hosts.weights != nil {
		key = f.hosts.blend(key, n.host, id)
	}
	return bucketOf(key)
}

// received does what follows when a page that is not in the queue has got something.
func (f *Frontier) received(id uint32, amount float64) {
	n := &f.nodes[id]
	switch {
	case n.state&fetched != 0:
		f.sums.held += amount
		f.owe(id, amount)
	case n.state&known == 0:
		f.meet(id)
		f.queue.add(f.nodes, f.bucket(id), id)
	case n.state&aside != 0:
		if b := f.bucket(id); b > n.bucket {
			f.hosts.unpark(f.nodes, id)
			f.queue.add(f.nodes, b, id)
		}
	}
}

// owe books an amount that a fetched page has got and not passed on, and lets AR and Push decide.
func (f *Frontier) owe(id uint32, amount float64) {
	n := &f.nodes[id]
	switch {
	case n.state&linked == 0:
		f.sums.dangling += amount
		return
	case !f.opts.KeepLinks:
		f.sums.open += amount
		return
	}
	rest := n.score - f.passed[id]
	f.sums.book(rest-amount, rest)
	if f.thrifty {
		f.consider(id)
	}
}

// book replaces what a page has to pass on.
func (s *sums) book(before, after float64) {
	s.open += math.Abs(after) - math.Abs(before)
	s.debt += max(-after, 0) - max(-before, 0)
}
