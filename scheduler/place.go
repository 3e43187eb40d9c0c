package scheduler

import "math/bits"

// setState also maintains the counts by state.
func (e *engine) setState(host uint32, s state) {
	p := e.at(host)
	if p.kind == aHost {
		e.inState[min(p.state, ready)]--
		e.inState[min(s, ready)]++
	}
	p.state = s
}

// hasWork reports whether a host has a task or a caller of Wait.
func (e *engine) hasWork(host *limiter) bool { return host.head != 0 || e.hasWaiters(host) }

// hasWaiters reports whether a host has a caller of Wait.
func (e *engine) hasWaiters(host *limiter) bool {
	return host.extra != 0 && e.extras.at(host.extra).waiters > 0
}

// isOpen reports whether a shared limiter can be leased now.
func (e *engine) isOpen(i uint32) bool {
	p := e.at(i)
	return p.out < e.most[p.kind] && *e.due(i) <= e.now
}

// replace is place for a limiter whose work, delay or leases have changed.
func (e *engine) replace(i uint32) {
	if e.at(i).kind == aHost {
		e.replaceHost(i)
	} else {
		e.replaceShared(i)
	}
}

// placeHost puts a host into the list it belongs in. It requires that the host is in no list.
func (e *engine) placeHost(i uint32) {
	p := e.at(i)
	switch work := e.hasWork(p); {
	case !work && p.out == 0:
		e.setState(i, idle)
	case !work || p.out >= e.most[aHost]:
		e.setState(i, leased)
	case *e.due(i) > e.now:
		e.setState(i, waiting)
		e.wheel.insert(i)
	case p.addr != 0:
		e.join(i, p.addr, e.hasWaiters(p))
	case p.group != 0:
		e.join(i, p.group, e.hasWaiters(p))
	default:
		e.makeReady(i, e.level(p))
	}
}

// replaceHost is placeHost for a host that has changed. It keeps its position in a waitlist or a
// ready list if it still belongs there.
func (e *engine) replaceHost(i uint32) {
	p := e.at(i)
	if e.hasWork(p) && p.out < e.most[aHost] && *e.due(i) <= e.now {
		switch {
		case p.state == ready+state(e.level(p)):
			return
		case p.state == atAddr, p.state == atGroup, p.state == holding:
			e.relevel(e.waitlistOf(i))
			return
		}
	}
	e.unplace(i)
	e.placeHost(i)
}

// addWaiter adds a caller of Wait to a host, and moves the host to the front of the waitlists. It
// must not queue behind other hosts: the caller may be holding the lease that they wait for.
func (e *engine) addWaiter(host uint32) {
	e.touch(host)
	x := e.extraOf(host)
	if x.waiters++; x.waiters > 1 {
		return
	}
	if p := e.at(host); p.state == holding {
		e.unlink(host)
		e.join(host, p.addr, true)
		e.setState(host, holding)
	} else {
		e.unplace(host)
		e.placeHost(host)
	}
	e.replaceHost(host)
}

// removeWaiter is the inverse of addWaiter.
func (e *engine) removeWaiter(host uint32) {
	e.extras.at(e.at(host).extra).waiters--
	e.updateDue(host)
	if !e.hasWaiters(e.at(host)) {
		e.unplace(host) // its place is among the hosts with callers of Wait
		e.placeHost(host)
	}
	e.replaceHost(host)
}

// unplace removes a host from its list.
func (e *engine) unplace(i uint32) {
	switch p := e.at(i); {
	case p.state == waiting:
		e.wheel.remove(i)
	case p.state >= ready:
		e.unready(i)
	case p.state == atAddr, p.state == atGroup, p.state == holding:
		shared, group, heldGroup := e.waitlistOf(i), p.group, p.state == holding
		e.unlink(i)
		e.replaceShared(shared)
		if heldGroup {
			e.unhold(group)
		}
	}
}

// waitlistOf returns the shared limiter whose waitlist a host is in.
func (e *engine) waitlistOf(i uint32) (shared uint32) {
	if p := e.at(i); p.state == atGroup {
		return p.group
	} else {
		return p.addr
	}
}

// join puts a host into the waitlist of a shared limiter: at the end, or behind the hosts that are
// already at the front. Those with a caller of Wait come first: if all goroutines of a crawler are
// in Wait, none leases the others.
func (e *engine) join(i, shared uint32, front bool) {
	e.joins++
	p, called := e.at(shared), e.hasWaiters(e.at(i))
	switch {
	case front && called:
		x := e.extraOf(shared)
		p.insert(&e.timers, i, *x.lastCalled())
		if *p.lastFront() == *x.lastCalled() {
			*p.lastFront() = i
		}
		*x.lastCalled() = i
	case front:
		p.insert(&e.timers, i, *p.lastFront())
		*p.lastFront() = i
	default:
		p.push(&e.timers, i)
	}
	if p.kind == aGroup {
		e.setState(i, atGroup)
	} else {
		e.setState(i, atAddr)
	}
	switch {
	case p.state == idle:
		e.placeShared(shared)
	case p.state == held && called:
		e.wrest(shared)
	default:
		e.relevel(shared)
	}
}

// wrest releases a held group, unless the host it is held for has a caller of Wait.
func (e *engine) wrest(group uint32) {
	if host := *e.holder(group); !e.hasWaiters(e.at(host)) {
		e.setState(host, atAddr)
		e.unhold(group)
	}
}

// holder is the host for which a group is held. A held group is in no list, so a link is free.
func (e *engine) holder(group uint32) *uint32 { return &e.timers.at(group).next }

// unlink removes a host from its waitlist, and leaves the shared limiter where it is.
func (e *engine) unlink(i uint32) {
	p, before := e.at(e.waitlistOf(i)), e.timers.at(i).prev
	if *p.lastFront() == i {
		*p.lastFront() = before
	}
	if p.extra != 0 && *e.extras.at(p.extra).lastCalled() == i {
		*e.extras.at(p.extra).lastCalled() = before
	}
	p.remove(&e.timers, i)
	e.setState(i, idle)
}

// placeShared puts a shared limiter into the list it belongs in. It must be in no list.
func (e *engine) placeShared(i uint32) {
	switch p := e.at(i); {
	case p.head == 0:
		p.state = idle
	case p.out >= e.most[p.kind]:
		p.state = leased
	case *e.due(i) > e.now:
		p.state = waiting
		e.wheel.insert(i)
	default:
		e.makeReady(i, e.level(e.at(p.head)))
	}
}

// replaceShared is placeShared for a shared limiter that has changed. A ready one keeps its
// position, and a held one stays held.
func (e *engine) replaceShared(i uint32) {
	if i == 0 {
		return
	}
	switch p := e.at(i); {
	case p.state == held:
		return
	case p.state == waiting:
		e.wheel.remove(i)
	case p.state >= ready:
		if p.head != 0 && e.isOpen(i) {
			e.relevel(i)
			return
		}
		e.unready(i)
	}
	e.placeShared(i)
}

// unhold releases a held group.
func (e *engine) unhold(group uint32) {
	e.at(group).state = idle
	e.placeShared(group)
}

// serve removes the first host from the waitlist of a shared limiter that is open and in no list,
// provided that the host is of the given level or above and may be leased. Otherwise it returns 0,
// and the shared limiter is where it belongs.
//
// A host that has both an address and a group waits for one after the other:
//
//  1. In the waitlist of its address. At its turn it is leased if the group is free, too.
//  2. Otherwise it moves to the waitlist of its group. At its turn it is leased if the address is
//     open.
//  3. Otherwise it goes to the front of the waitlist of its address, and its group is held for it:
//     no other host of the group is leased until the address opens and this one is.
//
// So each lease costs at most two changes of lists, and in each list a host waits for at most one
// turn of every other host. The group is not held while the address is paused, which may last for a
// day: such a host restarts at step 2 when the pause is over.
func (e *engine) serve(shared uint32, level uint8) (host uint32) {
	p := e.at(shared)
	for p.head != 0 {
		host := p.head
		h := e.at(host)
		if e.level(h) < level {
			break
		}
		wasHolding, other := h.state == holding, h.group
		if p.kind == aGroup {
			other = h.addr
		}
		e.unlink(host)
		switch {
		case wasHolding && e.isOpen(other):
			e.at(other).state = idle // lease places it
			return host
		case wasHolding: // another lease of the group has ended late
			e.at(other).state = idle
			e.join(host, other, true)
		case other == 0 || e.mayPass(h, other, p.kind):
			return host
		case p.kind != aGroup:
			e.join(host, other, e.hasWaiters(h))
		case e.isPaused(other):
			e.join(host, other, true)
		default:
			e.join(host, other, true)
			e.setState(host, holding)
			p.state = held
			*e.holder(shared) = host
			return 0
		}
	}
	e.placeShared(shared)
	return 0
}

// mayPass reports whether a host whose turn has come at a limiter of one kind may use the other one
// as well, without overtaking hosts that wait there. A host that has had its turn at its group goes
// before all that have not.
func (e *engine) mayPass(host *limiter, other uint32, at kind) bool {
	p := e.at(other)
	goesFirst := at == aGroup || e.hasWaiters(host)
	return p.state != held && e.isOpen(other) &&
		(p.head == 0 || goesFirst && *p.lastFront() == 0)
}

// level returns the level of a host that has work.
func (e *engine) level(host *limiter) uint8 {
	if e.hasWaiters(host) {
		return waitLevel
	}
	return e.tasks.at(host.head).priority
}

// makeReady puts a limiter that is in no list at the end of a ready list.
func (e *engine) makeReady(i uint32, level uint8) {
	e.ready.of[level].push(&e.timers, i)
	e.ready.inUse |= 1 << level
	e.ready.count++
	e.setState(i, ready+state(level))
}

// unready takes a limiter out of its ready list.
func (e *engine) unready(i uint32) {
	level := e.at(i).state - ready
	l := &e.ready.of[level]
	if l.remove(&e.timers, i); l.head == 0 {
		e.ready.inUse &^= 1 << level
	}
	e.ready.count--
	e.setState(i, idle)
}

// relevel moves a ready shared limiter to the ready list of the first host in its waitlist.
func (e *engine) relevel(shared uint32) {
	p := e.at(shared)
	if p.state < ready {
		return
	}
	if level := e.level(e.at(p.head)); ready+state(level) != p.state {
		e.unready(shared)
		e.makeReady(shared, level)
	}
}

// top returns the highest level at which something is ready.
func (r *readyLists) top() int { return bits.Len16(r.inUse) - 1 }
