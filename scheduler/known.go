package scheduler

import (
	"net/netip"
	"time"
)

// sweepBatch is the number of hosts, and that of shared limiters, that are checked whenever a lease
// ends, and after each call of SetHost, Withdraw, and any other that enters new limiters. No call
// leaves more than one host and two shared limiters idle, so the sweep catches up with them.
const sweepBatch = 2

// sweep forgets idle limiters whose delay has passed, among the next few limiters.
func (e *engine) sweep() {
	e.entered = false
	for half, used := range [...]uint32{e.hosts.used, e.shares.used} {
		hand := &e.hands[half]
		for range min(sweepBatch, used) {
			if *hand++; *hand >= used {
				*hand = 1
				e.delayed[half], e.delaying[half] = e.delaying[half], 0
			}
			i := *hand + uint32(half)*sharedBit
			if p := e.at(i); p.state == idle {
				if *e.due(i) > e.now {
					e.delaying[half]++
				}
				e.sweepOne(i, p)
			}
		}
	}
}

func (e *engine) sweepOne(i uint32, p *limiter) {
	noRoom := e.inState[idle]-e.delayed[0] > e.opts.MaxIdleHosts // the delayed ones cannot make room
	if p.kind != aHost {
		noRoom = e.shared(i).hosts == 0 && e.known[anAddr] > e.opts.MaxIdleHosts
	}
	if !e.expire(i, noRoom) || p.extra != 0 {
		return
	}
	belongs := false
	if p.kind == aHost {
		h := e.host(i)
		belongs = h.addr != 0 || h.group != 0
	} else {
		belongs = e.shared(i).hosts != 0
	}
	if !belongs {
		e.setState(p, vacant)
		e.forget(i)
	}
}

// expire forgets the last visit of an unused limiter if its delay has passed, of a host a minute
// later, and reports whether it has. A host's settings and failures are kept for a day, and so are an
// address's failures, unless there is no room.
func (e *engine) expire(i uint32, noRoom bool) (expired bool) {
	p := e.at(i)
	if p.state != idle || p.out > 0 || p.tasks > 0 {
		return false
	}
	due, known := e.due(i), int64(0)
	if p.kind == aHost && !noRoom && *due != longAgo {
		known = afterthought
	}
	if later(*due, known) > e.now || p.extra != 0 && e.extras.at(p.extra).spent > 0 {
		return false
	}
	stays := p.kind == aHost && !noRoom && !e.isStale(e.host(i))
	if p.extra != 0 {
		x := e.extras.at(p.extra)
		old := *x
		*x = extra{owner: old.owner, start: e.restarted, retry: longAgo}
		switch {
		case stays:
			x.wanted, x.asked, x.failures = old.wanted, old.asked, old.failures
			x.strange, x.stays = old.strange, old.stays
		case p.kind != aHost && !noRoom && old.failures > 0 && e.now-old.start <= retention:
			x.start, x.failures = old.start, old.failures
		}
		e.updateDue(i)
	}
	if p.extra == 0 {
		*due = e.unvisited(p.kind)
	}
	if p.kind == aHost && !stays {
		h := e.host(i)
		e.moveShared(h, &h.addr, 0)
		e.moveShared(h, &h.group, 0)
	}
	return true
}

// afterthought is for how long after its delay the last visit of a host is remembered, for a longer
// delay that is only found out by then: the Crawl-delay in a robots.txt whose body took long.
const afterthought = int64(time.Minute)

// retention is how long the settings and failures of an idle host are kept: a day, the maximum age
// of a cached robots.txt (RFC 9309, section 2.4).
const retention = int64(24 * time.Hour)

// isStale reports whether an idle host was last used more than a day ago.
func (e *engine) isStale(h *hostLimiter) bool {
	return int64(e.stamp()-h.used) > retention>>stampUnit
}

// A stamp is a time in units of 1.07 s since the first time seen. It overflows after 146 years.
const stampUnit = 30

// stamp returns the present as a stamp.
func (e *engine) stamp() uint32 {
	if e.now == longAgo {
		return 0
	}
	return uint32((e.now - e.first) >> stampUnit)
}

// use returns the number of a host, which is used now, and adds an unknown one. What is over is
// forgotten first, so that the result does not depend on when sweep last came by.
func (e *engine) use(name string) uint32 {
	i := e.freshen(e.named(aHost, name))
	e.touch(i)
	return i
}

// useAddr is use for an address. The invalid address has the number 0.
func (e *engine) useAddr(ip netip.Addr) uint32 {
	if !ip.IsValid() {
		return 0
	}
	return e.freshen(e.address(ip))
}

// freshen forgets what is over about a limiter, of a new one all. So that counts as visited if the
// Scheduler was restarted.
func (e *engine) freshen(i uint32) uint32 {
	if p := e.at(i); p.state == vacant {
		e.setState(p, idle)
	}
	e.expire(i, false)
	return i
}

// touch records that a host, its address and its group are used now.
func (e *engine) touch(host uint32) {
	h := e.host(host)
	h.used = e.stamp()
	for _, shared := range [...]uint32{h.addr, h.group} {
		if shared != 0 {
			e.expire(shared, false)
		}
	}
}

// setHost records what the caller knows about a host.
func (e *engine) setHost(name string, said Host, addrKnown bool) {
	i := e.use(name)
	addr, group := e.host(i).addr, e.host(i).group
	if addrKnown {
		addr = e.useAddr(said.Addr)
	}
	if said.Group != "" {
		group = e.freshen(e.named(aGroup, said.Group))
	}
	e.setShared(i, addr, group)
	e.setDelays(i, said.Delay, said.CrawlDelay)
	e.sweep() // callers may never make any other call
}

// setShared assigns a host to an address and a group.
func (e *engine) setShared(host, addr, group uint32) {
	h := e.host(host)
	if addr == h.addr && group == h.group {
		return
	}
	e.unlist(host, &h.limiter)
	e.moveShared(h, &h.addr, addr)
	e.moveShared(h, &h.group, group)
	e.settle(host)
}

// moveShared moves a host with its tasks from one shared limiter to another.
func (e *engine) moveShared(h *hostLimiter, from *uint32, to uint32) {
	if *from != 0 {
		old := e.shared(*from)
		old.hosts--
		old.tasks -= h.tasks
	}
	if to != 0 {
		p := e.shared(to)
		p.hosts++
		p.tasks += h.tasks
	}
	*from = to
}
