package scheduler

// setState keeps the figures by state.
func (b *book) setState(i uint32, s state) {
	p := b.places.at(i)
	if p.kind == aHost {
		b.inState[p.state]--
		b.inState[s]++
	}
	p.state = s
}

// wake returns when a host with tasks may be leased if its gates do not matter.
func (b *book) wake(p *place) int64 { return max(p.due, b.task(p.head).notBefore) }

// settleHost puts a host where it belongs now. It requires that the host is nowhere: that it has
// just left the wheel, a line, the rings or a lease, or is idle. The turn says for what it waited.
func (b *book) settleHost(i uint32, t turn) {
	p := b.places.at(i)
	switch {
	case p.count == 0 && p.out == 0:
		b.setState(i, idle)
	case p.count == 0 || p.out >= b.most[aHost]:
		b.setState(i, leased)
	case b.wake(p) > b.now:
		b.setState(i, waiting)
		b.wheel.insert(i, b.wake(p))
	default:
		b.lineUp(i, t)
	}
}

// resettleHost is settleHost for a host of which the queue or the delay has changed. If it has a
// turn it keeps it: it is looked at again when that comes.
func (b *book) resettleHost(i uint32) {
	switch p := b.places.at(i); p.state {
	case ready:
		return
	case waiting:
		b.wheel.remove(i)
	case inLine:
		if b.inRightLine(i, p) {
			return
		}
		b.leaveLine(i)
	}
	b.settleHost(i, turn{since: longAgo})
}

// gates returns the gates that count for a task.
func (b *book) gates(t *task) (addr, group uint32) {
	if !t.exempt() {
		addr = t.addr
	}
	return addr, t.group
}

// isOpen tells whether a gate can be leased now.
func (b *book) isOpen(gate uint32) bool {
	p := b.places.at(gate)
	return p.due <= b.now && p.out < b.most[p.kind]
}

// closedGate returns a gate that keeps a task from being leased, or 0.
func (b *book) closedGate(t *task) uint32 {
	addr, group := b.gates(t)
	switch {
	case addr != 0 && !b.isOpen(addr):
		return addr
	case group != 0 && !b.isOpen(group):
		return group
	default:
		return 0
	}
}

// lineUp puts a host whose time has come where its first task needs it: into the line of the gate
// that is closed, or else of any; without gates, into the rings.
func (b *book) lineUp(i uint32, t turn) {
	task := b.task(b.places.at(i).head)
	gate := b.closedGate(task)
	if addr, group := b.gates(task); gate == 0 {
		gate = max(addr, group) // any
		if addr != 0 {
			gate = addr
		}
	}
	if gate != 0 {
		b.setState(i, inLine)
		b.join(i, gate, t)
		return
	}
	b.setState(i, ready)
	t.id = i
	b.rings.push(task.priority(), t)
}

// join puts a host at the end of the line of a gate.
func (b *book) join(i, gate uint32, t turn) {
	g := b.places.at(gate)
	*b.timers.at(i) = timer{due: int64(gate), prev: g.tail}
	if g.tail == 0 {
		g.head = i
	} else {
		b.timers.at(g.tail).next = i
	}
	g.tail = i
	if g.state == idle {
		t.id = gate
		b.settleGate(gate, t)
	}
}

// leaveLine takes a host out of the line that it is in. A gate that nobody waits for is idle.
func (b *book) leaveLine(i uint32) {
	t := *b.timers.at(i)
	gate := uint32(t.due)
	g := b.places.at(gate)
	if t.prev == 0 {
		g.head = t.next
	} else {
		b.timers.at(t.prev).next = t.next
	}
	if t.next == 0 {
		g.tail = t.prev
	} else {
		b.timers.at(t.next).prev = t.prev
	}
	b.setState(i, idle)
	if g.head == 0 {
		b.resettleGate(gate)
	}
}

// inRightLine tells whether a host that is in line still has reason to be in that one.
func (b *book) inRightLine(i uint32, p *place) bool {
	if p.count == 0 || b.wake(p) > b.now {
		return false
	}
	addr, group := b.gates(b.task(p.head))
	gate := uint32(b.timers.at(i).due)
	return gate == addr || gate == group
}

// settleGate puts a gate where it belongs now. It requires that the gate is nowhere: that it has
// just left the wheel, the rings or a lease, or is idle.
func (b *book) settleGate(i uint32, t turn) {
	switch g := b.places.at(i); {
	case g.head == 0:
		g.state = idle
	case g.out >= b.most[g.kind]:
		g.state = leased
	case g.due > b.now:
		g.state = waiting
		b.wheel.insert(i, g.due)
	default:
		g.state = ready
		b.rings.push(b.task(b.places.at(g.head).head).priority(), t)
	}
}

// resettleGate is settleGate for a gate of which the delay, the leases or the line have changed.
// If it has a turn it keeps it.
func (b *book) resettleGate(i uint32) {
	if i == 0 {
		return
	}
	switch b.places.at(i).state {
	case ready:
		return
	case waiting:
		b.wheel.remove(i)
	}
	b.settleGate(i, turn{since: longAgo, id: i})
}

// check returns the host that a turn leads to, which is nowhere then and may be leased, or 0.
func (b *book) check(t turn) uint32 {
	if b.places.at(t.id).kind == aHost {
		return b.checkHost(t)
	}
	return b.checkGate(t)
}

// checkHost returns the host of a turn if it may still be leased. Otherwise it returns 0 and puts
// it elsewhere.
func (b *book) checkHost(t turn) uint32 {
	p := b.places.at(t.id)
	b.setState(t.id, idle)
	if p.count > 0 && p.out < b.most[aHost] && b.wake(p) <= b.now {
		if addr, group := b.gates(b.task(p.head)); addr == 0 && group == 0 {
			return t.id
		}
	}
	b.settleHost(t.id, t)
	return 0
}

// checkGate returns the first host in the line of a gate whose other gate is open, too, and takes
// it out of the line. Those before it go to stand in the line of that other gate. If there is
// none it returns 0.
//
// A host that needs two gates may so be sent from one line to the other and back, at most once for
// each time that a gate opens.
func (b *book) checkGate(t turn) uint32 {
	g := b.places.at(t.id)
	g.state = leased // so that hosts that leave the line do not settle it
	for g.head != 0 && b.isOpen(t.id) {
		i := g.head
		b.leaveLine(i)
		closed := b.closedGate(b.task(b.places.at(i).head))
		if closed == 0 {
			return i
		}
		b.setState(i, inLine)
		b.join(i, closed, turn{since: longAgo})
	}
	b.settleGate(t.id, t)
	return 0
}
