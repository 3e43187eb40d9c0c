package scheduler

import (
	"math"
	"net/netip"
	"time"
)

// Times are nanoseconds since the epoch of the Scheduler.
const (
	longAgo = math.MinInt64 // before every time: when what never happened did
	never   = math.MaxInt64 // after every time
)

// A book knows when each host and each address may be visited. It is the part of a Scheduler that
// does not depend on the type of items, and it never asks what time it is. It requires that the
// mutex of the Scheduler is held.
type book struct {
	hostDelay, addrDelay int64
	latencyFactor        float64

	now int64 // the latest time seen

	hostIDs map[string]uint32
	hosts   slab[host]
	inState [stateCount]int // hosts, for Stats
	addrIDs map[netip.Addr]uint32
	addrs   slab[addr]
	task    func(uint32) *task

	// What only waits to be forgotten has wheels of its own: nobody has to wake up for it.
	waitingHosts, waitingAddrs wheel
	coolingHosts, coolingAddrs wheel

	// Each turn in the ring is good for one lease, so the next one is found without a search.
	ready ring
}

// A task is the part of an entry of the queue that the book works with.
type task struct {
	notBefore int64
	addr      uint32 // 0 if unknown
	next      uint32 // task of the same host
}

// A state says where a host or an address is to be found:
//
//	waiting ──► ready ──► leased
//	   ▲          ▲          │
//	   └──────────┴──────────┤  something to do there
//	                         │
//	cooling ◄────────────────┤  nothing to do, but the delay runs
//	parked  ◄────────────────┘  nor does a delay run, but something refers to it
//
// From cooling and parked, work leads back to waiting or ready. What would be parked, but nothing
// refers to it, is forgotten. What a host has to do is its queue, what an address has to do is its
// line of hosts. Only settleHost and settleAddr choose between these states, and next leases.
type state uint8

const (
	// A parked host has a delay of its own to remember. A parked address is that of a task whose
	// host is not ready yet, or that is not the first of its queue.
	parked state = iota

	// What is cooling is in a wheel, to be forgotten when its delay has passed.
	cooling

	// What is waiting is in a wheel, and is wanted when its time has come.
	waiting

	// A ready address is in the ring. A ready host is in the line of its address, which need not be
	// ready; if its address is unknown, the host itself is in the ring.
	ready

	leased

	stateCount
)

// init makes b empty. The tasks that it works with are the caller's, by number.
func (b *book) init(opts Options, tasks func(uint32) *task) {
	b.hostDelay, b.addrDelay = int64(opts.HostDelay), int64(opts.AddrDelay)
	b.latencyFactor = opts.LatencyFactor
	b.now = longAgo
	b.hostIDs = make(map[string]uint32)
	b.addrIDs = make(map[netip.Addr]uint32)
	b.task = tasks
	hostTimer := func(i uint32) *timer { return &b.hosts.at(i).timer }
	addrTimer := func(i uint32) *timer { return &b.addrs.at(i).timer }
	b.waitingHosts = wheel{at: hostTimer, fire: b.settleHost}
	b.coolingHosts = wheel{at: hostTimer, fire: b.settleHost}
	b.waitingAddrs = wheel{at: addrTimer, fire: b.settleAddr}
	b.coolingAddrs = wheel{at: addrTimer, fire: b.settleAddr}
}

// add puts task t at the end of the queue of a host.
func (b *book) add(name string, ip netip.Addr, notBefore int64, t uint32) {
	*b.task(t) = task{notBefore: notBefore, addr: b.addrID(ip)}
	i := b.hostID(name)
	h := b.hosts.at(i)
	if h.head != 0 {
		b.task(h.tail).next = t
		h.tail = t
		return
	}
	h.head, h.tail = t, t
	b.resettleHost(i)
}

// next leases a host that is ready at now, and the address of its first task. It returns 0 if no
// host is ready.
func (b *book) next(now int64) uint32 {
	b.advance(now)
	for b.ready.len() > 0 {
		t := b.ready.pop()
		i := t.id
		if !t.host {
			i = b.nextInLine(t.id)
		} else if b.tooEarly(i) {
			i = 0
		}
		if i != 0 {
			b.setState(i, leased)
			return i
		}
	}
	return 0
}

// pop takes the first task from the queue of a leased host.
func (b *book) pop(i uint32) uint32 {
	h := b.hosts.at(i)
	t := h.head
	h.head = b.task(t).next
	return t
}

// charge starts the delays of a leased host and address.
func (b *book) charge(hostID, addrID uint32, start int64, took time.Duration) {
	h := b.hosts.at(hostID)
	h.start, h.slow = start, times(b.latencyFactor, took)
	if addrID != 0 {
		b.addrs.at(addrID).due = later(start, b.addrDelay)
	}
}

// release ends the lease on a host and an address. The address comes first: its other hosts have
// waited longer than this one.
func (b *book) release(hostID, addrID uint32) {
	if addrID != 0 {
		b.addrs.at(addrID).refs--
		b.settleAddr(addrID)
	}
	b.settleHost(hostID)
}

// setDelay remembers the delay that a host asked for.
func (b *book) setDelay(name string, d int64) {
	// A host that asks for nothing unusual need not be remembered for it.
	if d <= b.hostDelay {
		d = 0
	}
	i, known := b.hostIDs[name]
	if !known && d == 0 {
		return
	}
	if !known {
		i = b.hostID(name)
	}
	b.hosts.at(i).asked = d
	b.resettleHost(i)
}

// advance brings everything to the states of time now. Hosts come first, since a host that gets
// ready may be what an address waits for.
func (b *book) advance(now int64) {
	// Now is later than longAgo, so that a visit at any time differs from no visit.
	b.now = max(b.now, now, longAgo+1)
	b.waitingHosts.advance(b.now)
	b.coolingHosts.advance(b.now)
	b.waitingAddrs.advance(b.now)
	b.coolingAddrs.advance(b.now)
}

// soonest returns the earliest time at which some host may be ready.
func (b *book) soonest() int64 {
	if b.ready.len() > 0 {
		return b.now
	}
	return min(b.waitingHosts.soonest(), b.waitingAddrs.soonest())
}

// wait returns how long it is until soonest.
func (b *book) wait() time.Duration {
	t := b.soonest()
	// The second case is that of a difference that no Duration can hold.
	if t == never || b.now < 0 && t > never+b.now {
		return Forever
	}
	return time.Duration(t - b.now)
}

// names returns what the numbers of a host and an address stand for.
func (b *book) names(hostID, addrID uint32) (string, netip.Addr) {
	name := b.hosts.at(hostID).name
	if addrID == 0 {
		return name, netip.Addr{}
	}
	return name, b.addrs.at(addrID).ip
}

// count fills in the figures of hosts.
func (b *book) count(st *Stats) {
	st.Hosts = len(b.hostIDs)
	st.Idle = b.inState[parked] + b.inState[cooling]
	st.Waiting = b.inState[waiting] + b.inState[ready] - st.Ready
	st.Leased = b.inState[leased]
}

// later returns t plus d, but not more than the end of all time. It requires that d is not
// negative.
func later(t, d int64) int64 {
	if t > 0 && d > never-t {
		return never
	}
	return t + d
}

// times returns factor times d, within 0 and the end of all time.
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
