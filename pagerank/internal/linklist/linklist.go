// Package linklist turns the links found on a page into the links that count for a ranking.
package linklist

import (
	"math/bits"
	"math/rand/v2"
)

// A Cleaner removes from a page's links those that do not count: links to the page itself, repeated
// links, and ids from Limit on. The zero Cleaner is not usable: Limit must be set. It is not safe
// for concurrent use.
type Cleaner struct {
	Limit int
	Host  func(id uint32) uint32 // if set, links to other hosts come first

	buffer, own []uint32 // scratch
	sieve       sieve
}

// Clean returns the links of a page that count, and a number above all of them. They keep their
// order, except that links to other hosts come first: the paper's order of ties, since queues keep
// ids with equal scores in order of arrival. The result is valid until the next call. It may be the
// caller's slice, which is not changed.
func (c *Cleaner) Clean(page uint32, links []uint32) (clean []uint32, above uint64) {
	clean, above = c.distinct(page, links)
	if c.Host != nil && len(clean) > 0 {
		clean = c.othersFirst(page, clean)
	}
	return clean, above
}

func (c *Cleaner) distinct(page uint32, links []uint32) (clean []uint32, above uint64) {
	if above, ok := c.rising(page, links); ok {
		return links, above
	}
	clean = c.buffer[:0]
	c.sieve.start(len(links) + 1)
	c.sieve.add(page)
	for _, to := range links {
		if uint64(to) < uint64(c.Limit) && c.sieve.add(to) {
			clean = append(clean, to)
			above = max(above, uint64(to)+1)
		}
	}
	c.buffer = clean
	return clean, above
}

// rising reports whether links are sorted and all count, so that nothing needs to be copied. Many
// crawlers sort them anyway.
func (c *Cleaner) rising(page uint32, links []uint32) (above uint64, ok bool) {
	for _, to := range links {
		if uint64(to) < above || to == page {
			return 0, false
		}
		above = uint64(to) + 1
	}
	return above, above <= uint64(c.Limit)
}

// othersFirst moves links to other hosts to the front. Both parts keep their order.
func (c *Cleaner) othersFirst(page uint32, list []uint32) []uint32 {
	// The list may be the buffer itself: the part that is written never overtakes the one read.
	host, others := c.Host(page), c.buffer[:0]
	c.own = c.own[:0]
	for _, to := range list {
		if c.Host(to) == host {
			c.own = append(c.own, to)
		} else {
			others = append(others, to)
		}
	}
	c.buffer = append(others, c.own...)
	return c.buffer
}

// Bytes returns how much memory the Cleaner holds.
func (c *Cleaner) Bytes() int { return (cap(c.buffer)+cap(c.own))*4 + cap(c.sieve.slots)*8 }

// A sieve finds repeated ids. It fits into the first-level cache. Marks on the nodes would mean a
// cache miss per node.
type sieve struct {
	slots []uint64 // a round and an id; slots of other rounds are free
	round uint64   // in the upper half
	key   uint64   // of the hash: a page must not be able to choose ids that collide
	shift uint8    // from a hash to a slot
}

const longList = 1 << 8 // ids

// start forgets all ids and makes room for n.
func (s *sieve) start(n int) {
	// At most a quarter of the slots is used, so that an id is nearly always in its own slot; for
	// long lists half, to save memory.
	width := bits.Len(uint(n-1)) + 2
	if n > longList {
		width--
	}
	width = min(max(width, 6), 31)
	s.shift = uint8(64 - width)
	s.round += 1 << 32
	if len(s.slots) < 1<<width || s.round == 0 {
		s.slots, s.round = make([]uint64, max(1<<width, len(s.slots))), 1<<32
		s.key = rand.Uint64() | 1
	}
}

// add reports whether id is new.
func (s *sieve) add(id uint32) bool {
	mask := uint64(1)<<(64-s.shift) - 1
	hash := uint64(id) * s.key
	hash = (hash ^ hash>>32) * s.key
	for at := hash >> s.shift; ; at = (at + 1) & mask {
		switch slot := &s.slots[at]; {
		case *slot>>32 != s.round>>32:
			*slot = s.round | uint64(id)
			return true
		case uint32(*slot) == id:
			return false
		}
	}
}
