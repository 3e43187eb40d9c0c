package scheduler

// A timer is the part of an entry that a wheel needs. Its links serve every chain that the entry
// may be in: a slot of the wheel, a waitlist or a ready list. It is in at most one at a time.
type timer struct {
	due        int64
	prev, next uint32
}

// timers has a timer for each entry: in one slab for the numbers below sharedBit, and in another
// one for those above.
type timers [2]slab[timer]

func (t *timers) at(i uint32) *timer {
	if i < sharedBit {
		return t[0].at(i)
	}
	return t[1].at(i % sharedBit)
}

// A chain is a doubly linked list of entries. The zero chain is empty.
type chain struct{ head, tail uint32 }

// push puts an entry at the end. It requires that the entry is in no chain.
func (c *chain) push(timers *timers, i uint32) { c.insert(timers, i, c.tail) }

// insert puts an entry behind another one, or before all others if that is 0. It requires that the
// entry is in no chain.
func (c *chain) insert(timers *timers, i, behind uint32) {
	next := c.head
	if behind == 0 {
		c.head = i
	} else {
		prev := timers.at(behind)
		next, prev.next = prev.next, i
	}
	if next == 0 {
		c.tail = i
	} else {
		timers.at(next).prev = i
	}
	t := timers.at(i)
	t.prev, t.next = behind, next
}

// remove requires that the entry is in the chain.
func (c *chain) remove(timers *timers, i uint32) {
	t := timers.at(i)
	if t.prev == 0 {
		c.head = t.next
	} else {
		timers.at(t.prev).next = t.next
	}
	if t.next == 0 {
		c.tail = t.prev
	} else {
		timers.at(t.next).prev = t.prev
	}
}
