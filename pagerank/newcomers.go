package pagerank

import "math/bits"

// With Push, ids that were just discovered are newcomers. A page's first score is a guess from one
// link, and the highest of many guesses is usually too high. So newcomers enter the queue when the
// crawl has grown by about a percent and other links were seen. It saves work, too: until then,
// gains move nothing.
//
// Newcomers count as queued. The next level of their nodes is always, so that no gain moves them. A
// loss does, and admits them early.

// stretch returns the number of pages between admissions of newcomers: 1/128 to 1/64 of the crawl,
// as a power of two, so that it depends on the number of pages only.
func stretch(fetched int) int {
	return 1 << max(0, bits.Len(uint(fetched))-7)
}

// found queues an id that was just discovered.
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

// isNew reports whether a newcomer still is one. It may have been fetched, or have lost score.
func (n *node) isNew() bool { return n.state&queued != 0 && n.next == always }

// admit moves newcomers to their places in the queue.
func (f *Frontier) admit() {
	for _, id := range f.newcomers {
		if f.nodes[id].isNew() {
			f.queue.live--
			f.queue.add(f.nodes, f.level(id), id)
		}
	}
	f.newcomers = f.newcomers[:0]
}
