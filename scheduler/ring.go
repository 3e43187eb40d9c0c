package scheduler

import "math/bits"

// A turn is a gate with a line, or a host that needs no gate, that is ready.
type turn struct {
	since int64 // the time that it waited for; longAgo if it did not wait for a time
	id    uint32
	rule  Rule // which made it wait
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

// rings has a ring for each priority. There are so few that a word has a bit for each.
type rings struct {
	of    [priorities]ring
	inUse uint8
	turns int
}

func (r *rings) push(priority uint8, t turn) {
	r.of[priority].push(t)
	r.inUse |= 1 << priority
	r.turns++
}

// pop takes the first turn of the highest priority. It requires that there is a turn.
func (r *rings) pop() turn {
	top := bits.Len8(r.inUse) - 1
	t := r.of[top].pop()
	if r.of[top].len() == 0 {
		r.inUse &^= 1 << top
	}
	r.turns--
	return t
}
