package scheduler

import (
	"math"
	"time"
)

// A report is an Outcome in the units of an engine.
type report struct {
	skipped, unknown, failed bool

	start int64
	took  time.Duration
	retry int64
}

// maxAddrFailures bounds the back-off of an address to 64 times its delay. An address may serve
// many hosts, and the healthy ones should not wait for failing ones, which have their own back-off.
const maxAddrFailures = 6

// applyOutcome starts the delays of a limiter after a visit.
func (e *engine) applyOutcome(i uint32, f flight, r report) {
	p := e.at(i)
	if p.kind == aGroup { // servers know nothing of the caller's groups
		e.charge(i, f.start)
		return
	}
	slow := int64(0)
	if r.took > 0 {
		slow = min(times(e.opts.LatencyFactor, r.took), maxSlow)
	}
	if slow <= e.delay[p.kind] {
		slow = 0
	}
	if p.extra == 0 && slow == 0 && !r.failed && r.retry == longAgo {
		e.setDue(i, max(*e.due(i), later(f.start, e.delay[p.kind])))
		return
	}
	x := e.extraOf(i)
	x.start = max(x.start, f.start)
	if x.retry <= f.at {
		x.retry = longAgo
	}
	if !r.unknown {
		x.slow = [3]int64{slow, x.slow[0], x.slow[1]}
		if p.kind == aHost {
			x.slow = [3]int64{slow}
		}
		e.countFailure(p.kind, x, f, r.failed)
	}
	if r.retry > e.now {
		wait := min(int64(between(e.now, r.retry)), e.longestPause(p.kind, x))
		x.retry = max(x.retry, later(e.now, e.spread(x, wait)))
	}
	e.charge(i, f.start)
}

// maxSlow bounds the delays that result from latency, at the default bound of back-off. A latency
// is measured by the caller, and may be wrong.
const maxSlow = int64(time.Hour)

// hearsay bounds how long an address is closed for all of its hosts because one of them has sent a
// Retry-After, even for a day. Each further failure that the back-off counts doubles it, so each
// success, which halves these failures, shortens it a lot: if what that host says is true of the
// others, there is none, and the address closes for longer and longer.
const hearsay = int64(time.Minute)

// longestPause returns for how long a Retry-After may close a limiter.
func (e *engine) longestPause(k kind, x *extra) int64 {
	longest := int64(e.opts.MaxRetryAfter)
	if k != aHost {
		longest = min(longest, hearsay<<min(max(0, int(x.failures)-1), maxAddrFailures))
	}
	return longest
}

// spread adds up to a tenth to a pause, so that crawlers that were told to wait at the same time do
// not come back at the same time. How much it is depends on the limiter and on the Scheduler.
func (e *engine) spread(x *extra, pause int64) int64 {
	if e.seed == 0 {
		return pause
	}
	h := (e.seed ^ uint64(x.owner)) * 0x9E3779B97F4A7C15 // Fibonacci hashing
	h = (h ^ h>>32) * 0x9E3779B97F4A7C15
	return later(pause, int64(float64(pause/10)*float64(h>>40)/(1<<24)))
}

// maxAhead is how far in the future a caller may report an arrival. It is longer than any request
// takes, and prevents a wrong clock from blocking a host forever.
const maxAhead = int64(24 * time.Hour)

// countFailure halves the failures at each success. Of visits in flight at the same time only one
// failure counts, as they probably have the same cause.
func (e *engine) countFailure(k kind, x *extra, f flight, failed bool) {
	switch {
	case !failed:
		x.failures /= 2
	case f.serial > x.raised && e.backoff(k, x.failures) < e.backoff(k, x.failures+1):
		x.failures++
		x.raised = e.serial
	}
}

// backoff returns the minimum delay after a number of failures. For a host, each failure after the
// first doubles it; for an address, each failure does.
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

// charge starts the delay of a limiter at a visit, unless it counts from a later one.
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

// setDue sets when the delay of a limiter has passed, and settles it. A pause of an address ends the
// holds for its hosts, whatever the reason of the pause.
func (e *engine) setDue(i uint32, at int64) {
	if due := e.due(i); *due != at {
		if p := e.at(i); p.state == waiting {
			e.unlist(i, p) // the wheel finds it by its due time
		}
		*due = at
		if i >= sharedBit && e.isPaused(i) {
			e.unholdAll(i)
		}
	}
	e.settle(i)
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
	d := max(slow, x.wanted, x.asked, e.spread(x, e.backoff(p.kind, x.failures)))
	return max(d, e.delay[p.kind])
}

// isPaused reports whether a shared limiter stays closed for longer than its default delay. If only
// the last visit was reported ahead of its time, that is longer by another delay.
func (e *engine) isPaused(i uint32) bool {
	p := e.at(i)
	usual := later(e.now, e.delay[p.kind])
	if p.extra == 0 {
		usual = later(usual, max(e.delay[p.kind], int64(time.Second)))
	}
	return *e.due(i) > usual
}

// extraOf returns the extra of a limiter, and creates it if necessary.
func (e *engine) extraOf(i uint32) *extra {
	p, due := e.at(i), *e.due(i)
	if p.extra == 0 {
		p.extra = e.extras.alloc()
		e.calls[0].alloc() // same number: the slabs are used in step
		start := int64(longAgo)
		if due != longAgo {
			// If due is never, this is not the start, but a longer delay also ends at never.
			start = due - e.delay[p.kind]
		}
		*e.extras.at(p.extra) = extra{owner: i, start: start, retry: longAgo}
	}
	return e.extras.at(p.extra)
}

// updateDue recomputes when the delay of a limiter has passed, after its extra has changed. An
// extra that is no longer needed is released.
func (e *engine) updateDue(i uint32) {
	p := e.at(i)
	x := e.extras.at(p.extra)
	due := x.retry
	if x.start != longAgo {
		due = max(due, later(x.start, e.pace(p)))
	}
	e.setDue(i, due)
	isUsual := x.slow == [3]int64{} && x.wanted == 0 && x.asked == 0 && x.failures == 0 && x.retry == longAgo &&
		!x.ranked && x.waiters == 0 && x.spent == 0 && x.strange == 0
	if isUsual && (x.raised == 0 || p.out == 0) {
		e.extras.release(p.extra)
		e.calls[0].release(p.extra)
		p.extra = 0
	}
}

// setDelays remembers the delays of a Host. Zero leaves an earlier one.
func (e *engine) setDelays(host uint32, wanted, asked time.Duration) {
	usual := e.delay[aHost] // a delay up to that need not be stored
	asked = min(asked, time.Duration(retention))
	if wanted == 0 && asked == 0 ||
		e.at(host).extra == 0 && int64(wanted) <= usual && int64(asked) <= usual {
		return
	}
	x := e.extraOf(host)
	for _, d := range []struct {
		new int64
		of  *int64
	}{{int64(wanted), &x.wanted}, {int64(asked), &x.asked}} {
		switch {
		case d.new > usual:
			*d.of = d.new
		case d.new != 0:
			*d.of = 0
		}
	}
	e.updateDue(host)
}

// earliest returns a time before which a host is not leased.
func (e *engine) earliest(host uint32) int64 {
	h := e.host(host)
	at := *e.due(host)
	for _, shared := range [...]uint32{h.addr, h.group} {
		if shared != 0 {
			at = max(at, *e.due(shared))
		}
	}
	return at
}
