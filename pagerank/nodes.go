package pagerank

import "math"

// A node is the state of an id. It has 16 bytes, so that a link touches one cache line.
type node struct {
	score float64
	host  uint32
	next  uint16 // the level above which a gain needs more than an addition
	state uint8
}

// Bits of a node's state. A known node without queued, aside and fetched was returned by Next.
const (
	known   = 1 << iota
	queued  // in the queue, or a newcomer
	fetched // its links are known
	linked  // fetched, and has links
	kept    // and they are kept
	aside   // its host was not ready
	marked  // seen in the current list
	waiting // in the wave
)

const maxIDs = math.MaxUint32 & math.MaxInt // an int has to hold them

// bucket returns the bucket of a node that is queued or aside: next is one above the level that its
// key had then.
func (n *node) bucket() uint16 { return bucketAt(n.next - 1) }

// isIn reports whether an entry for the node in bucket b is valid.
func (n *node) isIn(b uint16) bool {
	// The first comparison decides all levels within the range of the buckets.
	return n.state&queued != 0 && (n.next == lowest+b+1 || n.bucket() == b)
}

// beyond reports whether an id is to be ignored. It compares 64 bits: in an int of 32 bits the
// upper half of all ids is negative.
func (f *Frontier) beyond(id uint32) bool { return uint64(id) >= uint64(f.opts.Limit) }

// cover makes room for n ids, in the nodes and in parallel slices. New nodes are unknown.
func (f *Frontier) cover(n uint64) {
	if n <= uint64(len(f.nodes)) {
		return
	}
	f.nodes = lengthened(f.nodes, int(n))
	if f.keeps() {
		f.passed = lengthened(f.passed, int(n))
		f.places = lengthened(f.places, int(n))
	}
	if f.blends() {
		f.hosts.cash = lengthened(f.hosts.cash, int(n))
	}
}

// meet makes id known and reports whether it was unknown. The caller queues it.
func (f *Frontier) meet(id uint32) (added bool) {
	n := &f.nodes[id]
	if n.state&known != 0 {
		return false
	}
	if f.opts.Host != nil {
		n.host = f.opts.Host(id)
		f.hosts.meet(n.host)
	}
	n.state |= known
	f.sums.known++
	return true
}

// hostOf returns the host of an id, known or not. Options.Host must be set.
func (f *Frontier) hostOf(id uint32) uint32 {
	if uint64(id) < uint64(len(f.nodes)) && f.nodes[id].state&known != 0 {
		return f.nodes[id].host
	}
	return f.opts.Host(id)
}

// lengthened returns s with n elements. New elements are zero, provided that s is never shortened.
func lengthened[T any](s []T, n int) []T {
	if n > cap(s) {
		// Growing by a quarter costs a little more than append's growth, and wastes less.
		s = append(make([]T, 0, max(n, cap(s)+cap(s)/4+16)), s...)
	}
	return s[:n]
}
