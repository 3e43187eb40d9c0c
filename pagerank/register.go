package pagerank

import (
	"math"
	"math/bits"
	"slices"
)

// A register holds the nodes, and makes lists of links fit to be counted.
type register struct {
	nodes []node
	limit int // ids from here on are ignored
	host  func(id uint32) uint32

	clean []uint32 // the links that count of the page in hand; perhaps the caller's slice

	buffer, own []uint32 // scratch
	sieve       sieve
}

// A node is what is known of an id; 16 bytes, so that a link touches one cache line.
type node struct {
	score float64
	host  uint32
	next  uint16 // the level from which on a gain needs more than an addition
	state uint8
}

// bucket returns the bucket of a node that is queued or set aside: the level below next is the one
// that its key had when it got there.
func (n *node) bucket() uint16 { return bucketAt(n.next - 1) }

// isIn tells whether an entry in bucket b for the node is valid.
func (n *node) isIn(b uint16) bool {
	// The first comparison is right for all levels in the range of the buckets, and saves the second.
	return n.state&queued != 0 && (n.next == lowest+b+1 || n.bucket() == b)
}

// States of a node. One that is known and neither queued, aside nor fetched was handed out.
const (
	known   = 1 << iota
	queued  // has a valid entry in the queue
	fetched // its links are known
	linked  // fetched, and has links
	kept    // and they are kept
	aside   // its host was not ready
	marked  // is in the list just looked at
	waiting // is in the wave
)

const maxIDs = math.MaxUint32 & math.MaxInt // an int has to hold them

// beyond tells whether an id is to be ignored. It compares in 64 bits, for in an int of 32 the upper
// half of all ids is negative.
func (r *register) beyond(id uint32) bool { return uint64(id) >= uint64(r.limit) }

// has tells whether an id is known.
func (r *register) has(id uint32) bool {
	return uint64(id) < uint64(len(r.nodes)) && r.nodes[id].state&known != 0
}

// hostOf asks for the host of an id. A number beyond the limit counts as 0, so that a stray one
// cannot take all memory.
func (r *register) hostOf(id uint32) uint32 {
	if h := r.host(id); !r.beyond(h) {
		return h
	}
	return 0
}

// know notes that id is known, and where.
func (r *register) know(id uint32) (added bool) {
	n := &r.nodes[id]
	if n.state&known != 0 {
		return false
	}
	n.state |= known
	if r.host != nil {
		n.host = r.hostOf(id)
	}
	return true
}

// cover makes room for ids up to id. The new nodes are not known yet.
func (r *register) cover(id uint32) {
	if int(id) >= len(r.nodes) { // seldom, and asking costs less than a call
		r.nodes = lengthened(r.nodes, int(id)+1)
	}
}

// tidy puts the links that count into r.clean, those to other hosts first: the paper's order of
// ties, as queues keep ids with equal scores in the order in which they came.
func (r *register) tidy(id uint32, links []uint32) {
	r.cover(id)
	if r.rising(id, links) {
		r.clean = links
	} else {
		r.sift(id, links)
	}
	if r.host != nil && len(links) > 0 {
		r.othersFirst(id)
	}
}

// rising tells whether links are sorted, without repetitions, and all count, and makes room for
// them. Then their nodes need not be looked at to find that out, which is half of the work.
func (r *register) rising(id uint32, links []uint32) bool {
	next := uint64(0)
	for _, to := range links {
		if uint64(to) < next || to == id { // next is beyond 32 bits after the highest id
			return false
		}
		next = uint64(to) + 1
	}
	if next > uint64(r.limit) {
		return false
	}
	if next > uint64(len(r.nodes)) {
		r.cover(uint32(next - 1))
	}
	return true
}

// sift copies the links that count to r.clean.
func (r *register) sift(id uint32, links []uint32) {
	r.buffer = slices.Grow(r.buffer[:0], len(links))
	clean, most := r.buffer, uint32(0)
	r.sieve.start(len(links) + 1)
	r.sieve.add(id)
	for _, to := range links {
		if !r.beyond(to) && r.sieve.add(to) {
			clean = append(clean, to)
			most = max(most, to)
		}
	}
	if len(clean) > 0 {
		r.cover(most)
	}
	r.buffer, r.clean = clean, clean
}

// A sieve tells ids that it has met from others. It is small enough for the fastest memory, where
// marks on the nodes themselves would have to wait for each node before the next link is looked at.
type sieve struct {
	slots []uint64 // a round and an id; those of other rounds are free
	round uint64   // in the upper half
	shift uint8    // of a hash, to get a slot
}

const longList = 1 << 8 // ids

// start forgets all ids, and makes room for n.
func (s *sieve) start(n int) {
	// At most a quarter of the slots is taken, so that an id is nearly always where it belongs; of
	// long lists a half, for memory.
	width := bits.Len(uint(n-1)) + 2
	if n > longList {
		width--
	}
	width = min(max(width, 6), 31)
	s.shift = uint8(32 - width)
	s.round += 1 << 32
	if len(s.slots) < 1<<width || s.round == 0 {
		s.slots, s.round = make([]uint64, max(1<<width, len(s.slots))), 1<<32
	}
}

// add tells whether id is new.
func (s *sieve) add(id uint32) bool {
	mask := uint32(1)<<(32-s.shift) - 1
	for at := id * 0x9e3779b1 >> s.shift; ; at = (at + 1) & mask {
		switch slot := &s.slots[at]; {
		case *slot>>32 != s.round>>32:
			*slot = s.round | uint64(id)
			return true
		case uint32(*slot) == id:
			return false
		}
	}
}

// othersFirst reorders r.clean.
func (r *register) othersFirst(id uint32) {
	host, others := r.whereIs(id), r.buffer[:0]
	r.own = r.own[:0]
	for _, to := range r.clean {
		if r.whereIs(to) == host {
			r.own = append(r.own, to)
		} else {
			others = append(others, to)
		}
	}
	// Both parts keep their order, which is that of the page.
	r.buffer = append(others, r.own...)
	r.clean = r.buffer
}

// whereIs returns the host of an id that need not be known.
func (r *register) whereIs(id uint32) uint32 {
	if n := &r.nodes[id]; n.state&known != 0 {
		return n.host
	}
	return r.hostOf(id)
}
