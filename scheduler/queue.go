package scheduler

import "net/netip"

// A task is what the book knows of a task. The item is with the Scheduler, under the same number:
// so only items can hold pointers, and lie close.
type task struct {
	notBefore int64
	stamp     uint32 // when it was added, and its priority
	addr      uint32 // 0 if unknown; with a bit for those that are exempt
	group     uint32
	next      uint32 // task of the same host
}

const (
	exemptBit = 1 << 31

	// A stamp has 29 bits for the time in units of 1.07 s, which go round in 18 years.
	priorityBits = 3
	priorities   = 1 << priorityBits
	stampUnit    = 30
	stampMask    = 1<<(32-priorityBits) - 1
)

func (t *task) addrID() uint32  { return t.addr &^ exemptBit }
func (t *task) exempt() bool    { return t.addr&exemptBit != 0 }
func (t *task) priority() uint8 { return uint8(t.stamp >> (32 - priorityBits)) }

// stamp returns the present for the stamp of a task.
func (b *book) stamp() uint32 {
	if b.now == longAgo {
		return 0
	}
	return uint32((b.now-b.first)>>stampUnit) & stampMask
}

// age returns how long ago a task was added, to about a second.
func (b *book) age(t *task) int64 {
	return int64((b.stamp()-t.stamp)&stampMask) << stampUnit
}

// An order is what the book has to know about a task that is added.
type order struct {
	host, group string
	addr        netip.Addr
	exempt      bool
	priority    uint8
	notBefore   int64
}

// add puts a task into the queue of its host, and returns its number.
func (b *book) add(o order) (t uint32) {
	entry := task{
		notBefore: o.notBefore,
		stamp:     b.stamp() | uint32(o.priority)<<(32-priorityBits),
	}
	if o.addr.IsValid() {
		i, isNew := b.address(o.addr)
		entry.addr = b.refer(i, isNew)
	}
	if o.exempt {
		entry.addr |= exemptBit
	}
	if o.group != "" {
		entry.group = b.refer(b.named(aGroup, o.group))
	}
	t = b.tasks.alloc()
	*b.task(t) = entry
	host := b.use(aHost, o.host)
	if b.enqueue(host, t) {
		b.resettleHost(host)
	}
	return t
}

// use returns the number of a named place, which it makes known.
func (b *book) use(k kind, name string) uint32 {
	i, isNew := b.named(k, name)
	b.freshen(i, isNew)
	return i
}

// refer counts one more task that goes to a gate.
func (b *book) refer(i uint32, isNew bool) uint32 {
	b.freshen(i, isNew)
	b.places.at(i).count++
	return i
}

// freshen makes a place that has been idle for longer than its delay like one that was forgotten.
// The hand of sweep comes when it comes, but what is remembered should not depend on that.
func (b *book) freshen(i uint32, isNew bool) {
	p := b.places.at(i)
	switch {
	case isNew:
		for b.timers.used < b.places.used {
			b.timers.alloc()
		}
		if p.kind == aHost {
			b.inState[idle]++
		}
		if b.restarted[p.kind] > b.now {
			p.due = b.restarted[p.kind]
		}
	case p.count == 0 && p.out == 0:
		b.expire(i)
	}
}

// enqueue puts a task behind those of the same priority, and tells whether it is the first now.
func (b *book) enqueue(host, t uint32) (first bool) {
	p, task := b.places.at(host), b.task(t)
	p.count++
	if p.head == 0 {
		p.head, p.tail = t, t
		return true
	}
	behind := p.tail
	if b.isRanked(p) || b.task(p.tail).priority() != task.priority() {
		behind = b.rank(host, t)
	}
	if behind == 0 {
		task.next, p.head = p.head, t
		return true
	}
	last := b.task(behind)
	task.next, last.next = last.next, t
	if behind == p.tail {
		p.tail = t
	}
	return false
}

func (b *book) isRanked(p *place) bool { return p.manner != 0 && b.manners.at(p.manner).ranked }

// rank makes a task the last of its priority and returns behind which task it belongs. With few
// priorities it takes few steps to find that.
func (b *book) rank(host, t uint32) (behind uint32) {
	p, m, priority := b.places.at(host), b.mannerOf(host), b.task(t).priority()
	if !m.ranked {
		m.ranked, m.tails = true, [priorities]uint32{}
		m.tails[b.task(p.tail).priority()] = p.tail
	}
	for _, tail := range m.tails[priority:] {
		if tail != 0 {
			behind = tail
			break
		}
	}
	m.tails[priority] = t
	return behind
}

// dequeue takes the first task out of the queue of a host.
func (b *book) dequeue(host uint32) uint32 {
	p := b.places.at(host)
	t := p.head
	task := b.task(t)
	p.head = task.next
	p.count--
	if p.head == 0 {
		p.tail = 0
	}
	if b.isRanked(p) {
		m := b.manners.at(p.manner)
		if tail := &m.tails[task.priority()]; *tail == t {
			*tail = 0
		}
		if p.head == 0 {
			m.ranked = false
			b.redue(host)
		}
	}
	return t
}

// discard takes the first task of a host back. What is to be done with the entry is the caller's.
func (b *book) discard(host uint32) (t uint32) {
	t = b.dequeue(host)
	for _, gate := range [...]uint32{b.task(t).addrID(), b.task(t).group} {
		if gate != 0 {
			b.places.at(gate).count--
		}
	}
	return t
}
