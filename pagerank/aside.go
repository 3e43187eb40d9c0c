package pagerank

import (
	"cmp"
	"math"
	"slices"
)

// A lot is the queue of a host that is not ready. Ids may join it at any time, and a late one may
// be better than those that wait, so it is a heap, ordered by bucket and then by id. If an id gains
// or leaves, its old entry stays and is stale.
type lot struct {
	entries []entry // a binary heap, the highest first
	n       int     // ids
	busy    bool    // until Release
}

// An entry has a bucket in its upper half and the complement of an id below.
type entry uint64

func entryFor(n *node, id uint32) entry { return entry(n.bucket())<<32 | entry(^id) }
func (e entry) id() uint32              { return ^uint32(e & math.MaxUint32) }

// holds reports whether an entry is valid.
func (e entry) holds(nodes []node) bool {
	n := &nodes[e.id()]
	return n.state&aside != 0 && entryFor(n, e.id()) == e
}

// NextReady is Next for a polite crawler. ready reports whether a host may be visited now. An id on
// a host that is not ready is set aside, and ready is not called again for this host until Release.
// So a busy host costs nothing, however many of its ids are at the top of the queue.
func (f *Frontier) NextReady(ready func(host uint32) bool) (id uint32, ok bool) {
	for {
		id, ok = f.Next()
		if !ok {
			return 0, false
		}
		host := f.nodes[id].host
		l := f.lots[host]
		// In a lot that is not busy, each id waits for the Release of one visit.
		if l == nil || !l.busy {
			if ready(host) {
				return id, true
			}
			if l = f.lots[host]; l == nil { // again: ready may have called Release
				l = &lot{}
				f.lots[host] = l
			}
			l.busy = true
		}
		f.nodes[id].state |= aside
		l.n++
		f.aside++
		f.enlist(l, &f.nodes[id], id)
	}
}

// Drop removes an id from the queue: it will never be fetched, because it is forbidden or unwanted.
// An unknown id becomes known without being queued, so links to it do not queue it either. It keeps
// its score. Discover undoes it. A fetched id is ignored.
//
// If the host has ids set aside and is not busy, this was perhaps the id that they wait for, so the next
// of them goes back to the queue, as it does when Fetched reports an id that is queued.
func (f *Frontier) Drop(id uint32) {
	if f.beyond(id) {
		return
	}
	f.cover(uint64(id) + 1)
	f.meet(id)
	n := &f.nodes[id]
	waits := n.state&(aside|fetched) != 0
	f.withdraw(id)
	if !waits {
		f.wake(n.host)
	}
}

// wake is called when an id has left the queue without a visit, which would end with Release. If the
// ids that are set aside waited for that, the next of them goes back to the queue.
func (f *Frontier) wake(host uint32) {
	if l := f.lots[host]; l != nil && !l.busy {
		f.Release(host)
	}
}

// Release reports that a host may be visited again. The best of its ids that were set aside goes
// back to the queue; the others wait for the next Release.
func (f *Frontier) Release(host uint32) {
	l := f.lots[host]
	if l == nil {
		return
	}
	l.busy = false
	if l.n == 0 {
		delete(f.lots, host)
		return
	}
	e := l.pop()
	for !e.holds(f.nodes) {
		e = l.pop()
	}
	f.unpark(&f.nodes[e.id()])
	f.queue.add(f.nodes, f.level(e.id()), e.id())
}

// enlist adds an entry for an id that is aside. It drops stale ones when most of them are.
func (f *Frontier) enlist(l *lot, n *node, id uint32) {
	l.push(entryFor(n, id))
	if len(l.entries) > 2*l.n+16 {
		l.entries = l.valid(f.nodes)
	}
}

// unpark takes a node out of its lot.
func (f *Frontier) unpark(n *node) {
	n.state &^= aside
	f.lots[n.host].n-- // an empty lot stays until Release: it marks the host as busy
	f.aside--
}

// relocate moves an id that is aside to the bucket for another level.
func (f *Frontier) relocate(n *node, level uint16, id uint32) {
	n.next = level + 1
	f.enlist(f.lots[n.host], n, id)
}

// allAside returns the ids set aside, by bucket and then by id.
func (f *Frontier) allAside() (ids []uint32) {
	for _, lot := range f.lots {
		for _, e := range lot.valid(f.nodes) {
			ids = append(ids, e.id())
		}
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(f.nodes[a].bucket(), f.nodes[b].bucket()), cmp.Compare(a, b))
	})
	return ids
}

// valid returns the valid entries, the highest first, each once.
func (l *lot) valid(nodes []node) []entry {
	list := slices.DeleteFunc(slices.Clone(l.entries), func(e entry) bool { return !e.holds(nodes) })
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(b, a) })
	return slices.Compact(list)
}

func (l *lot) push(e entry) {
	l.entries = append(l.entries, e)
	h := l.entries
	for i := len(h) - 1; i > 0 && h[(i-1)/2] < h[i]; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// pop removes the highest entry. There must be one.
func (l *lot) pop() entry {
	top, last := l.entries[0], len(l.entries)-1
	l.entries[0] = l.entries[last]
	l.entries = l.entries[:last]
	h := l.entries
	for i, c := 0, 1; c < len(h); c = 2*i + 1 {
		if c+1 < len(h) && h[c+1] > h[c] {
			c++
		}
		if h[c] <= h[i] {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	return top
}
