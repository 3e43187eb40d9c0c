package pagerank

import "math"

// A register holds the nodes, and makes lists of links fit to be counted.
type register struct {
	nodes []node
	limit int // ids from here on are ignored
	host  func(id uint32) uint32

	clean []uint32 // the links that count of the page in hand; perhaps the caller's slice

	buffer, own []uint32 // scratch
}

// A node is what is known of an id; 16 bytes, so that a link touches one cache line.
type node struct {
	score  float64
	host   uint32
	bucket uint16
	state  uint8
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

// hostOf asks for the host of an id. A number beyond the limit counts as 0, so that a stray one
// cannot take all memory.
func (r *register) hostOf(id uint32) uint32 {
	if h := r.host(id); int(h) < r.limit {
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
	if n := int(id) + 1; n > len(r.nodes) {
		r.nodes = append(r.nodes, make([]node, n-len(r.nodes))...)
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
		if uint64(to) < next || to == id {
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
	clean, nodes := r.buffer[:0], r.nodes
	nodes[id].state |= marked
	for _, to := range links {
		if int(to) >= len(nodes) {
			if int(to) >= r.limit {
				continue
			}
			r.cover(to)
			nodes = r.nodes
		}
		n := &nodes[to]
		if n.state&marked == 0 {
			n.state |= marked
			clean = append(clean, to)
		}
	}
	nodes[id].state &^= marked
	for _, to := range clean {
		nodes[to].state &^= marked
	}
	r.buffer, r.clean = clean, clean
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
