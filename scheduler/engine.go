package scheduler

import (
	"math"
	"time"
)

// Times are nanoseconds since the epoch of the Scheduler.
const (
	longAgo = math.MinInt64 // before every time; stands for events that never happened
	never   = math.MaxInt64 // after every time
)

// An engine knows when each host, address and group may be visited. It is the part of a Scheduler
// that does not depend on the type of items, and it never reads the clock. It requires that the
// mutex of the Scheduler is held.
type engine struct {
	delay     [kinds]int64
	most      [kinds]uint16 // leases at a time
	maxTasks  [kinds]uint32 // queued
	opts      Options
	restarted int64 // all limiters count as visited then; longAgo: no restart

	now    int64  // the latest time seen
	first  int64  // the first time seen
	serial uint64 // of the last lease
	seed   uint64 // of spread; 0 means no spread

	directory
	extras slab[extra]
	calls  timers // of the extras, for the lists of called hosts; they are never due
	tasks  slab[task]

	// The wheel contains every host that waits for its delay, and every shared limiter that hosts
	// wait for, by their numbers in the directory. Idle limiters need no wake-up and are not in it.
	wheel wheel
	ready readyLists

	// Tasks with a future NotBefore are in a separate wheel, so that they delay nothing.
	deferredTimers timers
	deferrals      slab[deferral] // by the numbers of the timers
	deferred       wheel

	flights      slab[flight]
	flightTimers timers // by the numbers of flights; due is when the lease counts as lost
	flying       chain  // of flights, in the order in which their timeouts began

	hands    [2]uint32      // the last host and the last shared limiter that were swept
	delaying [2]int         // idle ones whose delay is running, in this round of sweep so far
	delayed  [2]int         // in the last round
	inState  [ready + 1]int // hosts
	lost     int64          // leases without Done within the timeout
	joins    int64          // how often a host joined a waitlist; for tests

	dropped func(task uint32) // called with the task of a lost lease, before it is released
}

// A flight is an outstanding lease.
type flight struct {
	serial   uint64 // tells it from earlier flights with the same number
	at       int64  // when the lease was given
	start    int64  // when the request reached the server, as far as known
	limiters [3]uint32
	task     uint32 // 0 if it was given by Wait
	waits    uint32 // calls of Wait by its holder; during these it has no timeout and is not in flying
	pending  uint8  // a bit for each limiter whose pendingBit it has set
	started  bool   // Arrived was called
	spent    bool   // it has given its turn back, and only keeps its task
}

// The order of limiters in a flight.
const (
	theHost = iota
	theAddr
	theGroup
)

// init makes e empty.
func (e *engine) init(o Options, seed uint64) {
	e.seed = seed
	e.delay = [kinds]int64{int64(o.HostDelay), int64(o.AddrDelay), int64(o.GroupDelay)}
	e.most = [kinds]uint16{uint16(o.MaxPerHost), uint16(o.MaxPerAddr), uint16(o.MaxPerGroup)}
	e.maxTasks = [kinds]uint32{
		uint32(o.MaxHostQueue), uint32(o.MaxAddrQueue), uint32(o.MaxGroupQueue),
	}
	e.opts = o
	e.now = longAgo
	e.restarted = longAgo
	e.directory.init()
	e.wheel = wheel{timers: &e.timers, fire: e.delayPassed}
	e.deferred = wheel{timers: &e.deferredTimers, fire: e.taskDue}
}

// due is when the delay of a limiter has passed; longAgo if it was never visited.
func (e *engine) due(i uint32) *int64 { return &e.timers.at(i).due }

// unvisited returns the due time of a limiter of which no visit is known.
func (e *engine) unvisited(k kind) int64 {
	if e.restarted == longAgo {
		return longAgo
	}
	return later(e.restarted, e.delay[k])
}

// next leases a ready host together with its address and its group, and returns the number of the
// flight. It returns 0 if no host of the given level or above is ready.
func (e *engine) next(level uint8) (n uint32) {
	for e.ready.inUse>>level != 0 {
		i := e.ready.of[e.ready.top()].head
		e.unlist(i, e.at(i))
		host := i
		if i >= sharedBit {
			host = e.serve(i, level)
		}
		if host != 0 {
			return e.lease(host)
		}
	}
	return 0
}

// lease leases a host that is in no list. Its delay must have passed, and its address and group
// must be open.
func (e *engine) lease(host uint32) (n uint32) {
	h := e.host(host)
	e.serial++
	n = e.flights.alloc()
	e.flightTimers[0].alloc() // same number: the slabs are used in step
	e.startTimeout(n)
	f := e.flights.at(n)
	*f = flight{
		serial: e.serial, at: e.now, start: e.now,
		limiters: [...]uint32{theHost: host, theAddr: h.addr, theGroup: h.group},
	}
	for which := range f.limiters {
		e.take(f, which)
	}
	if e.hasWaiters(h) {
		e.extras.at(h.extra).waiters--
		e.updateDue(host)
	} else {
		f.task = e.dequeue(host)
		e.countTasks(host, -1)
	}
	for _, i := range f.limiters {
		e.settle(i)
	}
	return n
}

// take adds a flight to the count of one of its limiters.
func (e *engine) take(f *flight, which int) {
	i := f.limiters[which]
	if i == 0 {
		return
	}
	p := e.at(i)
	p.out++
	switch {
	case e.most[p.kind] == 1:
	case e.pace(p) > 0:
		p.out |= pendingBit
		f.pending |= 1 << which
	default: // a delay that is learned before the request has arrived counts from now
		*e.due(i) = e.now
		if p.extra != 0 {
			e.extras.at(p.extra).start = e.now
		}
	}
}

// leave is the inverse of take.
func (e *engine) leave(f *flight, which int) {
	p := e.at(f.limiters[which])
	p.out--
	if f.pending>>which&1 != 0 {
		p.out &^= pendingBit
		f.pending &^= 1 << which
	}
}

// arrived records when the request of a flight reaches the server. If a limiter allows several
// leases, its delay counts from then.
func (e *engine) arrived(n uint32, at int64) {
	f := e.flights.at(n)
	if f.spent {
		return
	}
	f.start, f.started = max(f.start, min(at, later(e.now, maxAhead))), true
	for which, i := range f.limiters {
		if i == 0 || e.most[e.at(i).kind] == 1 {
			continue
		}
		if f.pending>>which&1 != 0 {
			e.at(i).out &^= pendingBit
			f.pending &^= 1 << which
		}
		e.charge(i, f.start)
	}
}

// reach records the address that the request of a flight is about to go to. It reports whether that
// address may be visited now.
func (e *engine) reach(n uint32, addr uint32) bool {
	f := e.flights.at(n)
	if f.spent {
		return false
	}
	host := f.limiters[theHost]
	old := f.limiters[theAddr]
	open := addr == 0 || e.isOpen(addr) && e.isNext(addr, host) // before it waits there itself
	if !open && old != 0 && old != addr && e.host(host).addr != addr && e.isStrange(host, addr) {
		return false
	}
	e.setShared(host, addr, e.host(host).group)
	if old == addr {
		return true
	}
	if old != 0 {
		e.leave(f, theAddr)
		f.limiters[theAddr] = 0
		e.settle(old)
	}
	if addr == 0 || !open {
		return open
	}
	f.limiters[theAddr] = addr
	e.take(f, theAddr)
	e.settle(addr)
	return true
}

// maxStays is how many times in a row a host stays at an address although its name leads elsewhere: if that
// address is free, the next lease comes at once.
const maxStays = 3

// isStrange reports whether a host has not waited for an address without success before, and so stays
// where it is. A name server may rotate the addresses of a name: a host that went to each of them in
// turn would be at the end of one waitlist after the other.
func (e *engine) isStrange(host, addr uint32) bool {
	x := e.extraOf(host)
	if x.strange == addr || x.stays == maxStays {
		x.strange, x.stays = 0, 0
		return false
	}
	x.strange = addr
	x.stays++
	return true
}

// release ends a flight. The caller must release its task.
func (e *engine) release(n uint32, r report) {
	f := *e.flights.at(n)
	e.stopTimeout(n)
	e.flights.release(n)
	e.flightTimers[0].release(n)
	e.host(f.limiters[theHost]).used = e.stamp()
	if f.spent {
		e.extraOf(f.limiters[theHost]).spent--
		e.updateDue(f.limiters[theHost])
	} else {
		e.end(&f, r)
	}
	e.sweep()
}

// end gives back the turn of a flight. Shared limiters come first: their other hosts have waited
// longer than this one.
func (e *engine) end(f *flight, r report) {
	f.start = max(f.start, min(r.start, later(e.now, maxAhead)))
	for _, which := range [...]int{theAddr, theGroup, theHost} {
		i := f.limiters[which]
		if i == 0 {
			continue
		}
		e.leave(f, which)
		switch {
		case r.skipped:
			e.settle(i)
		case f.spent: // its outcome is not known
			e.charge(i, f.start)
		default:
			e.applyOutcome(i, *f, r)
		}
	}
}

// spend gives back the turn of a flight, before its holder waits for another one. The flight keeps
// its task. Its timeout stops, since its holder is known to be there, until waited is called.
func (e *engine) spend(n uint32) {
	e.stopTimeout(n)
	f := e.flights.at(n)
	f.waits++
	if f.spent {
		return
	}
	host := f.limiters[theHost]
	e.extraOf(host).spent++
	f.spent = true
	e.end(f, report{skipped: !f.started, start: longAgo, retry: longAgo})
	f.limiters = [3]uint32{theHost: host}
}

// waited is called when the holder of a flight no longer waits.
func (e *engine) waited(n uint32) {
	f := e.flights.at(n)
	if f.waits--; f.waits == 0 {
		e.startTimeout(n)
	}
}

// stopTimeout is the inverse of startTimeout.
func (e *engine) stopTimeout(n uint32) {
	if e.flights.at(n).waits == 0 {
		e.flying.remove(&e.flightTimers, n)
	}
}

// startTimeout starts the timeout of a flight.
func (e *engine) startTimeout(n uint32) {
	due := &e.flightTimers.at(n).due
	*due = never
	if timeout := e.opts.LeaseTimeout; timeout != Forever {
		*due = later(e.now, int64(timeout))
	}
	e.flying.push(&e.flightTimers, n)
}

// advance moves everything to the state at time now.
func (e *engine) advance(now int64) {
	// Now is later than longAgo, so that a visit at any time differs from no visit.
	if e.now == longAgo {
		e.first = max(now, longAgo+1)
	}
	e.now = max(e.now, now, longAgo+1)
	e.deferred.advance(e.now)
	e.wheel.advance(e.now)
	for n := e.flying.head; n != 0 && e.flightTimers.at(n).due <= e.now; n = e.flying.head {
		t := e.flights.at(n).task
		e.lost++
		e.release(n, report{failed: true, start: e.now, retry: longAgo})
		e.dropped(t)
	}
}

// delayPassed is called with a limiter that has left the wheel.
func (e *engine) delayPassed(i uint32) {
	e.setState(e.at(i), idle)
	e.settle(i)
}

// soonest returns the earliest time at which some host may be ready.
func (e *engine) soonest() int64 {
	if e.ready.inUse != 0 {
		return e.now
	}
	return e.nextEvent()
}

// nextEvent returns the earliest time at which something changes without a call.
func (e *engine) nextEvent() int64 {
	at := min(e.wheel.soonest(), e.deferred.soonest())
	if e.flying.head != 0 {
		at = min(at, e.flightTimers.at(e.flying.head).due)
	}
	return at
}

// later returns t plus d, but at most never. It requires that d is not
// negative.
func later(t, d int64) int64 {
	if t > 0 && d > never-t {
		return never
	}
	return t + d
}

// between returns the duration from one time to a later one.
func between(from, to int64) time.Duration {
	// The second condition is that the difference overflows a Duration.
	if to == never || from < 0 && to > never+from {
		return Forever
	}
	return time.Duration(to - from)
}

// times returns factor times d, between 0 and never.
func times(factor float64, d time.Duration) int64 {
	switch product := factor * float64(d); {
	case product >= never:
		return never
	case product > 0:
		return int64(product)
	default:
		return 0
	}
}
