package pagerank

import (
	"cmp"
	"math/bits"
	"slices"
)

// Push lets ids wait that were just found. A page's first score is a guess from one link, and the
// highest of many guesses is mostly one that is too high. Until the crawl has grown by about a
// percent, other links have had their say. Batch, which computes anew at each percent, lets new ids
// wait in the same way. It saves work too: an id moves in the queue once it is there, not before.
//
// Those that wait count as queued, but their node's next is always, so that no gain moves them. A
// loss does, and lets them in before their time.

// stretch is how many pages are fetched between one time that newcomers are let in and the next:
// from 1/128 to 1/64 of the crawl, and a power of two, so that it follows from the number of pages.
func stretch(fetched int) int {
	return 1 << max(0, bits.Len(uint(fetched))-stretchBits)
}

const stretchBits = 7

// found queues an id that was just met, now or later.
func (f *Frontier) found(id uint32) {
	if f.stretch == 1 {
		f.queue.add(f.nodes, f.level(id), id)
		return
	}
	n := &f.nodes[id]
	n.state |= queued
	n.next = always
	f.queue.live++
	f.newcomers = append(f.newcomers, id)
}

// waits tells whether a newcomer still waits: it may have been fetched meanwhile.
func (n *node) waits() bool { return n.state&queued != 0 && n.next == always }

// letIn puts newcomers into the queue.
func (f *Frontier) letIn() {
	for _, id := range f.newcomers {
		if n := &f.nodes[id]; n.waits() {
			f.queue.live--
			f.queue.add(f.nodes, f.level(id), id)
		}
	}
	f.newcomers = f.newcomers[:0]
}

// pop takes the first id of the queue. If there is none, newcomers need not wait.
func (f *Frontier) pop() (id uint32, ok bool) {
	if id, ok = f.queue.pop(f.nodes); !ok && len(f.newcomers) > 0 {
		f.letIn()
		return f.queue.pop(f.nodes)
	}
	return id, ok
}

// lineUp returns the newcomers in the order in which they would come out of the queue.
func (f *Frontier) lineUp() []uint32 {
	list := slices.Clone(f.newcomers)
	list = slices.DeleteFunc(list, func(id uint32) bool { return !f.nodes[id].waits() })
	slices.SortStableFunc(list, func(a, b uint32) int {
		return cmp.Compare(bucketAt(f.level(b)), bucketAt(f.level(a)))
	})
	return list
}
