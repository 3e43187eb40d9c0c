package scheduler

import (
	"math"
	"time"
)

// An extra is what is unusual about a limiter, mostly what makes its delay longer than that of
// others.
type extra struct {
	owner    uint32
	waiters  uint32 // of a host: callers of Wait
	failures uint8  // net of successes, for the back-off
	ranked   bool   // the queue has tasks of several priorities
	raised   uint64 // serial of the last flight that was known when a failure was last counted
	start    int64  // of the last visit, from which the delays count; longAgo if there was none
	asked    int64  // delay by SetHost; 0 if that is not more than usual
	retry    int64  // when the server says to come back; longAgo if it does not

	// The delays for the latencies of the last visits, the last one first; 0 if a delay is not more
	// than usual. A host needs only one.
	slow [3]int64

	// The last task of each priority, if ranked.
	tails [priorities]uint32
}

// A report is an Outcome in the terms of an engine.
type report struct {
	skipped, failed bool
	start           int64
	took            time.Duration
	retry           int64
}

// maxAddrFailures bounds the back-off of an address at 64 times its delay. Many hosts may live
// there, and those that are well should not wait for the ill ones, which have a back-off each.
const maxAddrFailures = 6

// judge starts the delays of a limiter after a visit, as its outcome demands.
func (e *engine) judge(i uint32, f flight, r report) {
	p := e.at(i)
	if p.kind == aGroup { // which is the caller's own matter, of which servers know nothing
		e.charge(i, f.start)
		return
	}
	slow := min(times(e.opts.LatencyFactor, r.took), maxSlow)
	if slow <= e.delay[p.kind] {
		slow = 0
	}
	if p.extra == 0 && slow == 0 && !r.failed && r.retry == longAgo {
		e.charge(i, f.start)
		return
	}
	x := e.extraOf(i)
	x.start = max(x.start, f.start)
	x.slow = [3]int64{slow, x.slow[0], x.slow[1]}
	if p.kind == aHost {
		x.slow = [3]int64{slow}
	}
	if x.retry <= f.at {
		x.retry = longAgo
	}
	if r.retry != longAgo {
		x.retry = max(x.retry, min(r.retry, later(e.now, int64(e.opts.MaxRetryAfter))))
	}
	e.countFailure(p.kind, x, f, r.failed)
	e.charge(i, f.start)
	if p.kind != aHost && e.isPaused(i) {
		e.unholdFronts(i)
	}
}

// maxSlow bounds the delays that result from latency: as those after failures, unless the options
// say otherwise. A latency is what the caller has measured, and may be wrong.
const maxSlow = int64(time.Hour)

// maxAhead is how far after the present a caller may say that a request arrives. It is longer than
// any request takes, and keeps a wrong clock from taking a host out for good.
const maxAhead = int64(24 * time.Hour)

// countFailure halves the failures at each success. Of visits that were out at the same time only
// one failure counts: they tell of the same trouble.
func (e *engine) countFailure(k kind, x *extra, f flight, failed bool) {
	switch {
	case !failed:
		x.failures /= 2
	case f.serial > x.raised && e.backoff(k, x.failures) < e.backoff(k, x.failures+1):
		x.failures++
		x.raised = e.serial
	}
}

// backoff returns the least delay after so many failures. A host's is doubled by each after the
// first, an address's by each.
func (e *engine) backoff(k kind, failures uint8) int64 {
	limit := int64(e.opts.MaxBackoff)
	switch {
	case failures == 0 || k == aGroup:
		return 0
	case k == aHost:
		return min(times(math.Ldexp(1, int(failures)-1), e.opts.Backoff), limit)
	default:
		doubled := min(int(failures), maxAddrFailures)
		return min(times(math.Ldexp(1, doubled), time.Duration(e.delay[k])), limit)
	}
}

// charge makes the delay of a limiter count from a visit, unless it counts from a later one.
func (e *engine) charge(i uint32, start int64) {
	p := e.at(i)
	if p.extra == 0 {
		e.setDue(i, max(*e.due(i), later(start, e.delay[p.kind])))
		return
	}
	x := e.extras.at(p.extra)
	x.start = max(x.start, start)
	e.updateDue(i)
}

// setDue sets when the delay of a limiter has passed. The wheel finds its entries by that time, so
// the limiter leaves it.
func (e *engine) setDue(i uint32, at int64) {
	due := e.due(i)
	if *due == at {
		return
	}
	if e.at(i).state == waiting {
		e.wheel.remove(i)
		e.setState(i, idle)
	}
	*due = at
}

// pace returns the delay from one visit to the next.
func (e *engine) pace(p *limiter) int64 {
	if p.extra == 0 {
		return e.delay[p.kind]
	}
	x := e.extras.at(p.extra)
	slow := x.slow[0]
	if p.kind != aHost {
		slow = min(slow, x.slow[1], x.slow[2])
	}
	d := max(slow, x.asked, e.backoff(p.kind, x.failures))
	return max(min(d, int64(e.opts.MaxDelay)), e.delay[p.kind])
}

// isPaused tells whether a shared limiter stays closed for longer than its usual delay.
func (e *engine) isPaused(i uint32) bool {
	p := e.at(i)
	return p.extra != 0 && *e.due(i) > later(e.now, e.delay[p.kind])
}

// unholdFronts lets the groups go on that are held for hosts at the front of a waitlist.
func (e *engine) unholdFronts(addr uint32) {
	p := e.at(addr)
	for i := *p.lastFront(); i != 0; i = e.timers.at(i).prev {
		if e.at(i).state == holding {
			e.setState(i, atAddr)
			e.unhold(e.at(i).group)
		}
	}
}

// extraOf returns the extra of a limiter, which it gets if it has none.
func (e *engine) extraOf(i uint32) *extra {
	p, due := e.at(i), *e.due(i)
	if p.extra == 0 {
		p.extra = e.extras.alloc()
		start := int64(longAgo)
		if due != longAgo {
			// If due is the end of all time this is not the start, but a longer delay has the same
			// end.
			start = due - e.delay[p.kind]
		}
		*e.extras.at(p.extra) = extra{owner: i, start: start, retry: longAgo}
	}
	return e.extras.at(p.extra)
}

// updateDue works out anew when the delay of a limiter has passed, after its extra has changed. The
// extra goes if nothing is unusual any longer. Replace has to follow, as after setDue.
func (e *engine) updateDue(i uint32) {
	p := e.at(i)
	x := e.extras.at(p.extra)
	due := x.retry
	if x.start != longAgo {
		due = max(due, later(x.start, e.pace(p)))
	}
	e.setDue(i, due)
	isUsual := x.slow == [3]int64{} && x.asked == 0 && x.failures == 0 && x.retry == longAgo &&
		!x.ranked && x.waiters == 0
	if isUsual && (x.raised == 0 || p.out == 0) {
		e.extras.release(p.extra)
		p.extra = 0
	}
}

// setDelay remembers the delay that a host asked for.
func (e *engine) setDelay(host uint32, d int64) {
	// A host that asks for nothing unusual need not be remembered for it.
	if d <= e.delay[aHost] {
		d = 0
	}
	if e.at(host).extra == 0 && d == 0 {
		return
	}
	e.extraOf(host).asked = d
	e.updateDue(host)
	e.replaceHost(host)
}

// earliest returns a time before which a host is not leased.
func (e *engine) earliest(host uint32) int64 {
	p := e.at(host)
	at := *e.due(host)
	if p.addr != 0 {
		at = max(at, *e.due(p.addr))
	}
	if p.group != 0 {
		at = max(at, *e.due(p.group))
	}
	return at
}
