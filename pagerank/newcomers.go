package pagerank

import (
	"cmp"
	"math/bits"
	"slices"
)

// With Push, ids that were just found are newcomers. A page's first score is a guess from one link,
// and the highest of many guesses is mostly one that is too high. So newcomers get their place in
// the queue when the crawl has grown by about a percent and other links were seen. It saves work,
// too: their gains until then move nothing.
//
// Newcomers count as queued. Their node's next is always, so that no gain moves them. A loss does,
// and admits them early.

// stretch returns how many pages are fetched from one admission of newcomers to the next: from
// 1/128 to 1/64 of the crawl, as a power of two, so that it follows from the number of pages alone.
func stretch(fetched int) int {
	return 1 << max(0, bits.Len(uint(fetched))-7)
}

// found queues an id that was just met.
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

// isNew reports whether a newcomer still is one: it may have been fetched, or have lost score.
func (n *node) isNew() bool { return n.state&queued != 0 && n.next == always }

// admit gives newcomers their places in the queue.
func (f *Frontier) admit() {
	for _, id := range f.newcomers {
		if f.nodes[id].isNew() {
			f.queue.live--
			f.queue.add(f.nodes, f.level(id), id)
		}
	}
	f.newcomers = f.newcomers[:0]
}

// waitingNewcomers returns the newcomers in the order in which they were found.
func (f *Frontier) waitingNewcomers() []uint32 {
	return slices.DeleteFunc(slices.Clone(f.newcomers), func(id uint32) bool { return !f.nodes[id].isNew() })
}

// lineUp returns the newcomers in the order in which they would come out of the queue.
func (f *Frontier) lineUp() []uint32 {
	list := f.waitingNewcomers()
	slices.SortStableFunc(list, func(a, b uint32) int {
		return cmp.Compare(bucketAt(f.level(b)), bucketAt(f.level(a)))
	})
	return list
}
