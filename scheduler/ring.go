package scheduler

// A turn is an address, or a host without an address, that is ready.
type turn struct {
	id   uint32
	host bool // id is a host
}

// A ring is a first-in first-out queue of turns. The zero ring is empty.
type ring struct {
	buf  []turn // its length is a power of two, or zero
	head uint32 // counts pops
	tail uint32 // counts pushes; both wrap around
}

// len holds when the counts have wrapped around, too.
func (r *ring) len() int { return int(r.tail - r.head) }

// push puts t at the end.
func (r *ring) push(t turn) {
	if r.len() == len(r.buf) {
		r.grow()
	}
	r.buf[r.tail&uint32(len(r.buf)-1)] = t
	r.tail++
}

// pop takes the first turn. It requires that the ring is not empty.
func (r *ring) pop() turn {
	t := r.buf[r.head&uint32(len(r.buf)-1)]
	r.head++
	return t
}

// grow makes room for twice as many, and starts the counts anew.
func (r *ring) grow() {
	old, n := *r, r.len()
	*r = ring{buf: make([]turn, max(16, 2*n)), tail: uint32(n)}
	for i := range n {
		r.buf[i] = old.pop()
	}
}
