package scheduler

import (
	"math"
	"time"
)

// Times are nanoseconds since the epoch of the Scheduler.
const (
	longAgo = math.MinInt64 // before every time: when what never happened did
	never   = math.MaxInt64 // after every time
)

// A book knows when each host, address and group may be visited. It is the part of a Scheduler
// that does not depend on the type of items, and it never asks what time it is. It requires that
// the mutex of the Scheduler is held.
type book struct {
	delay         [kinds]int64
	most          [kinds]uint16 // leases at once
	latencyFactor float64
	maxDelay      int64 // 0 if there is none
	backoff       int64 // of a host, after its first failure
	maxBackoff    int64

	now    int64  // the latest time seen
	first  int64  // the first time seen
	serial uint64 // of the last lease

	directory
	manners slab[manner]
	tasks   slab[task]
	visits  slab[visit]
	inState [states]int // hosts, for Stats

	// Every host that waits for its time, and every gate that hosts wait for, is in the wheel, by
	// its number in the directory. Nothing else is: nobody has to wake up for what is idle.
	timers slab[timer]
	wheel  wheel

	// Each turn in the rings is good for one lease, so the next one is found without a search.
	rings rings

	// Until then nothing may be visited of which nothing is known, since LoadState; longAgo without.
	restarted [kinds]int64

	waitedFor [rules]int64 // leases
	lateness  [lateBuckets]int64
}

// A visit is a lease that is out.
type visit struct {
	serial            uint64 // tells it from those that had its number before
	at                int64
	host, addr, group uint32 // the gates that count, or 0
}

// init makes b empty.
func (b *book) init(opts Options) {
	addr, group := int64(opts.AddrDelay), int64(opts.GroupDelay)
	b.delay = [kinds]int64{
		aHost: int64(opts.HostDelay), anIPv4: addr, anIPv6: addr, aGroup: group,
	}
	perAddr := uint16(opts.MaxPerAddr)
	b.most = [kinds]uint16{
		aHost: uint16(opts.MaxPerHost), anIPv4: perAddr, anIPv6: perAddr,
		aGroup: uint16(opts.MaxPerGroup),
	}
	b.latencyFactor = opts.LatencyFactor
	b.maxDelay = int64(opts.MaxDelay)
	b.backoff, b.maxBackoff = int64(opts.Backoff), int64(opts.MaxBackoff)
	b.now = longAgo
	b.restarted = [kinds]int64{longAgo, longAgo, longAgo, longAgo}
	b.directory.init()
	b.wheel = wheel{timers: &b.timers, fire: b.fire}
}

// next leases a host that is ready at now, and its gates, and returns the number of the visit and
// that of the task. It returns 0 if no host is ready.
func (b *book) next(now int64) (v, t uint32) {
	b.advance(now)
	for b.rings.turns > 0 {
		turn := b.rings.pop()
		if host := b.check(turn); host != 0 {
			b.note(turn)
			return b.lease(host)
		}
	}
	return 0, 0
}

// note counts what the lease of a turn had waited for.
func (b *book) note(t turn) {
	b.waitedFor[t.rule]++
	if t.since != longAgo {
		b.lateness[lateBucket(b.now-t.since)]++
	}
}

// lease takes the first task of a host that is nowhere, and whose gates are open.
func (b *book) lease(host uint32) (v, t uint32) {
	t = b.dequeue(host)
	task := b.task(t)
	b.serial++
	v = b.visits.alloc()
	addr, group := b.gates(task)
	if known := task.addrID(); known != addr {
		b.places.at(known).count-- // as it does not count, the visit does not refer to it
	}
	*b.visits.at(v) = visit{serial: b.serial, at: b.now, host: host, addr: addr, group: group}
	b.hold(host)
	b.hold(addr)
	b.hold(group)
	b.settleHost(host, turn{since: longAgo})
	b.resettleGate(addr)
	b.resettleGate(group)
	return v, t
}

// hold counts a lease. Where several may be out, their delays count from here on already: when the
// first is given back it may be too late.
func (b *book) hold(i uint32) {
	if i == 0 {
		return
	}
	p := b.places.at(i)
	p.out++
	if b.most[p.kind] > 1 {
		b.start(i, b.now)
	}
}

// release ends a visit. The gates come first: their other hosts have waited longer than this one.
func (b *book) release(v uint32, o report) {
	visit := *b.visits.at(v)
	b.visits.release(v)
	for _, gate := range [...]uint32{visit.addr, visit.group} {
		if gate == 0 {
			continue
		}
		p := b.places.at(gate)
		p.count--
		p.out--
		b.charge(gate, visit, o)
		b.resettleGate(gate)
	}
	b.places.at(visit.host).out--
	b.charge(visit.host, visit, o)
	b.resettleHost(visit.host)
	b.sweep()
}

// advance brings everything to the states of time now.
func (b *book) advance(now int64) {
	// Now is later than longAgo, so that a visit at any time differs from no visit.
	if b.now == longAgo {
		b.first = max(now, longAgo+1)
	}
	b.now = max(b.now, now, longAgo+1)
	b.wheel.advance(b.now)
}

// fire settles what has left the wheel.
func (b *book) fire(i uint32) {
	t := turn{since: b.timers.at(i).due, id: i}
	if b.places.at(i).kind == aHost {
		t.rule = b.hostRule(i)
		b.settleHost(i, t)
		return
	}
	t.rule = b.delayRule(b.places.at(i))
	b.setState(i, idle)
	b.settleGate(i, t)
}

// soonest returns the earliest time at which some host may be ready.
func (b *book) soonest() int64 {
	if b.rings.turns > 0 {
		return b.now
	}
	return b.wheel.soonest()
}

// wait returns how long it is until soonest.
func (b *book) wait() time.Duration { return between(b.now, b.soonest()) }

// sweptAtOnce is how many places are looked at whenever a lease comes back. It leaves at most one
// host and two gates idle, so that the hand gains on those who leave.
const sweptAtOnce = 4

// sweep forgets what is idle and whose delay has passed, among the next few places.
func (b *book) sweep() {
	for range min(sweptAtOnce, b.places.used) {
		if b.hand++; b.hand >= b.places.used {
			b.hand = 1
		}
		p := b.places.at(b.hand)
		if p.state == idle && p.count == 0 && b.expire(b.hand) && p.manner == 0 {
			b.setState(b.hand, vacant)
			b.leave(b.hand)
		}
	}
}

func (b *book) task(t uint32) *task { return b.tasks.at(t) }

// later returns t plus d, but not more than the end of all time. It requires that d is not
// negative.
func later(t, d int64) int64 {
	if t > 0 && d > never-t {
		return never
	}
	return t + d
}

// between returns how long it is from one time to a later one.
func between(from, to int64) time.Duration {
	// The second case is that of a difference that no Duration can hold.
	if to == never || from < 0 && to > never+from {
		return Forever
	}
	return time.Duration(to - from)
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
