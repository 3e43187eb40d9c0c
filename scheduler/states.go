package scheduler

import "math/bits"

// A state says which list a host or a shared limiter is in, if any:
//
//	           ┌─► waiting ──► atAddr, atGroup ─┐
//	idle ──────┤      ▲               ▲         ├─► ready ──► leased ──► idle, or where its
//	(nothing   └──────┴───────────────┴─────────┘                        remaining work belongs
//	to do)
//
// The work of a host is its queue and its callers of Wait, that of a shared limiter its waitlist. A
// host that belongs to an address or a group is not in a ready list itself: that one is.
//
// The state follows from the rest: from the work, the leases and the due time. So whatever changes
// one of these calls settle, which finds the state and moves the limiter there. Nothing else
// changes states, except next and serve, which take the limiters out of their lists that lease is
// about to settle. Once its delay has passed, sweep removes an idle limiter.
type state uint8

const (
	vacant  state = iota // no limiter
	idle                 // nothing to do; its delay may still be running
	waiting              // in the wheel
	atAddr               // host: in the waitlist of its address
	atGroup              // host: in the waitlist of its group
	held                 // group: for the host in holder, see serve
	leased               // as many leases as allowed, or no more work
	ready                // plus its level: in the ready list of that level
)

// The levels of the ready lists: a level for each priority, and one for callers of Wait.
const (
	waitLevel = priorities
	levels    = waitLevel + 1
)

// readyLists has a list for each level, and a word with a bit for each list that is not empty.
type readyLists struct {
	of    [levels]chain
	inUse uint16
	count int
}

// top returns the highest level at which something is ready.
func (r *readyLists) top() int { return bits.Len16(r.inUse) - 1 }

// settle moves a limiter to the state in which it belongs. It keeps its place in a list if it stays
// there. Number 0 stands for none.
func (e *engine) settle(i uint32) {
	switch {
	case i >= sharedBit:
		p := e.shared(i)
		e.move(i, &p.limiter, e.sharedBelongs(i, p))
	case i > 0:
		h := e.host(i)
		to := e.hostBelongs(i, h)
		if to == h.state && (to == atAddr || to == atGroup) {
			e.settle(e.waitlistOf(h)) // its level may have changed
		}
		e.move(i, &h.limiter, to)
	}
}

// move moves a limiter to another list. One that the wheel is about to call delayPassed with, in
// the middle of advance, stays where the wheel finds it.
func (e *engine) move(i uint32, p *limiter, to state) {
	if to == p.state || p.state == waiting && *e.due(i) <= e.now {
		return
	}
	e.unlist(i, p)
	e.list(i, p, to)
}

// hostBelongs returns the state in which a host belongs.
func (e *engine) hostBelongs(i uint32, h *hostLimiter) state {
	switch work := e.hasWork(h); {
	case !work && h.out == 0:
		return idle
	case !work || h.out >= e.most[aHost]:
		return leased
	case *e.due(i) > e.now:
		return waiting
	case h.state == atAddr, h.state == atGroup:
		return h.state
	case h.addr != 0:
		return atAddr
	case h.group != 0:
		return atGroup
	}
	return ready + state(e.level(h))
}

// sharedBelongs returns the state in which a shared limiter belongs.
func (e *engine) sharedBelongs(i uint32, p *sharedLimiter) state {
	switch {
	case p.holder != 0:
		return held
	case p.head == 0:
		return idle
	case p.out >= e.most[p.kind]:
		return leased
	case *e.due(i) > e.now:
		return waiting
	}
	return ready + state(e.level(e.host(e.frontOf(p))))
}

// list puts a limiter that is in no list into that of a state.
func (e *engine) list(i uint32, p *limiter, to state) {
	switch {
	case to == atAddr:
		e.join(i, e.host(i).addr, false)
		return
	case to == atGroup:
		e.join(i, e.host(i).group, false)
		return
	case to == waiting:
		e.wheel.insert(i)
	case to >= ready:
		e.ready.of[to-ready].push(&e.timers, i)
		e.ready.inUse |= 1 << (to - ready)
		e.ready.count++
	}
	e.setState(p, to)
}

// unlist takes a limiter out of its list. A host loses the group that is held for it.
func (e *engine) unlist(i uint32, p *limiter) {
	switch s := p.state; {
	case s == idle:
		return
	case s == waiting:
		e.wheel.remove(i)
	case s == atAddr, s == atGroup:
		h := e.host(i)
		shared := e.waitlistOf(h)
		e.quit(i, h)
		e.settle(shared)
		e.unhold(i)
		return
	case s >= ready:
		l := &e.ready.of[s-ready]
		if l.remove(&e.timers, i); l.head == 0 {
			e.ready.inUse &^= 1 << (s - ready)
		}
		e.ready.count--
	}
	e.setState(p, idle)
}

// setState also maintains the counts by state.
func (e *engine) setState(p *limiter, s state) {
	if p.kind == aHost {
		e.inState[min(p.state, ready)]--
		e.inState[min(s, ready)]++
	}
	p.state = s
}

// hasWork reports whether a host has a task or a caller of Wait.
func (e *engine) hasWork(h *hostLimiter) bool { return h.last != 0 || e.hasWaiters(h) }

// hasWaiters reports whether a host has a caller of Wait.
func (e *engine) hasWaiters(h *hostLimiter) bool {
	return h.extra != 0 && e.extras.at(h.extra).waiters > 0
}

// level returns the level of a host that has work.
func (e *engine) level(h *hostLimiter) uint8 {
	if e.hasWaiters(h) {
		return waitLevel
	}
	return e.tasks.at(e.firstTask(h)).priority
}

// frontOf returns the host whose turn it is in a waitlist that is not empty.
func (e *engine) frontOf(p *sharedLimiter) (host uint32) {
	if p.called.head != 0 {
		return e.extras.at(p.called.head).owner
	}
	return p.head
}

// isOpen reports whether a shared limiter can be leased now.
func (e *engine) isOpen(i uint32) bool {
	p := e.at(i)
	return p.out < e.most[p.kind] && *e.due(i) <= e.now
}

// isNext reports whether a host that now asks for a shared limiter overtakes no other one there.
func (e *engine) isNext(i, host uint32) bool {
	p := e.shared(i)
	return p.head == 0 || p.head == host && p.tail == host
}

// waitlistOf returns the shared limiter whose waitlist a host is in.
func (e *engine) waitlistOf(h *hostLimiter) (shared uint32) {
	if h.state == atGroup {
		return h.group
	}
	return h.addr
}

// join puts a host into the waitlist of a shared limiter.
func (e *engine) join(host, shared uint32, front bool) {
	e.joins++
	h, p := e.host(host), e.shared(shared)
	p.join(&e.timers, host, front)
	if p.kind == aGroup {
		e.setState(&h.limiter, atGroup)
	} else {
		e.setState(&h.limiter, atAddr)
	}
	if e.hasWaiters(h) {
		e.call(host, shared)
	}
	e.settleTurn(shared)
}

// settleTurn settles a shared limiter after its first host may have changed.
func (e *engine) settleTurn(shared uint32) {
	p := e.shared(shared)
	if p.state != waiting && p.state != leased { // these do not depend on who waits
		e.settle(shared)
	}
}

// call lets a host in a waitlist come before those without a caller of Wait: if all goroutines of a
// crawler are in Wait, none leases the others. For the same reason it ends the hold of a group for a
// host without one.
func (e *engine) call(host, shared uint32) {
	p, extra := e.shared(shared), e.host(host).extra
	p.called.push(&e.calls, extra)
	e.extras.at(extra).calls = shared
	if p.holder != 0 && !e.hasWaiters(e.host(p.holder)) {
		p.holder = 0
	}
}

// uncall is the inverse of call, if the host was called.
func (e *engine) uncall(h *hostLimiter) {
	if h.extra == 0 {
		return
	}
	if x := e.extras.at(h.extra); x.calls != 0 {
		e.shared(x.calls).called.remove(&e.calls, h.extra)
		x.calls = 0
	}
}

// quit takes a host out of its waitlist, and leaves the shared limiter where it is.
func (e *engine) quit(host uint32, h *hostLimiter) {
	e.uncall(h)
	e.shared(e.waitlistOf(h)).leave(&e.timers, host)
	e.setState(&h.limiter, idle)
}

// holds reports whether the group of a host is held for it.
func (e *engine) holds(host uint32) bool {
	group := e.host(host).group
	return group != 0 && e.shared(group).holder == host
}

// unhold frees and settles the group of a host if it is held for that.
func (e *engine) unhold(host uint32) {
	if e.holds(host) {
		group := e.host(host).group
		e.shared(group).holder = 0
		e.settle(group)
	}
}

// unholdAll is unhold for all hosts of an address. They are at the front of its waitlist.
func (e *engine) unholdAll(addr uint32) {
	last := e.shared(addr).lastFront
	for host := last; host != 0; host = e.timers.at(host).prev {
		e.unhold(host)
	}
}

// addWaiter adds a caller of Wait to a host, whose turn then comes before that of others.
func (e *engine) addWaiter(host uint32) {
	x := e.extraOf(host)
	if x.waiters++; x.waiters > 1 {
		return
	}
	if h := e.host(host); h.state == atAddr || h.state == atGroup {
		shared := e.waitlistOf(h)
		e.call(host, shared)
		e.settleTurn(shared)
	} else {
		e.settle(host)
	}
}

// removeWaiter is the inverse of addWaiter. A host with tasks is then where it would be if nobody had
// called.
func (e *engine) removeWaiter(host uint32) {
	h := e.host(host)
	x := e.extras.at(h.extra)
	if x.waiters--; x.waiters == 0 {
		e.uncall(h)
		if h.group != 0 && e.shared(h.group).called.head != 0 {
			e.unhold(host) // for a caller of another host, who came while this one had one as well
		}
	}
	e.updateDue(host)
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
// day: such a host restarts at step 2 when the pause is over. So do all others of that address. If
// it pauses after each visit, as a slow one does, every visit costs two changes for each of them;
// only a list for each pair of an address and a group would avoid that.
func (e *engine) serve(shared uint32, level uint8) (host uint32) {
	p := e.shared(shared)
	for p.head != 0 {
		host := e.frontOf(p)
		h := e.host(host)
		if e.level(h) < level {
			break
		}
		other := h.group
		if p.kind == aGroup {
			other = h.addr
		}
		e.quit(host, h)
		switch {
		case e.holds(host):
			e.shared(other).holder = 0
			if e.isOpen(other) {
				return host
			}
			e.join(host, other, true) // another lease of the group has ended late
		case other == 0 || e.mayPass(h, other, p.kind):
			return host
		case p.kind != aGroup:
			e.join(host, other, false)
		case e.isPaused(other):
			e.join(host, other, true)
		default:
			e.join(host, other, true)
			p.holder = host
		}
		if p.holder != 0 {
			break
		}
	}
	e.settle(shared)
	return 0
}

// mayPass reports whether a host whose turn has come at a limiter of one kind may use the other one
// as well, without overtaking hosts that wait there. A host that has had its turn at its group goes
// before all that have not.
func (e *engine) mayPass(h *hostLimiter, other uint32, at kind) bool {
	p := e.shared(other)
	goesFirst := at == aGroup || e.hasWaiters(h)
	return p.holder == 0 && e.isOpen(other) &&
		(p.head == 0 || goesFirst && p.lastFront == 0 && p.called.head == 0)
}
