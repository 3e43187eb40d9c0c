package scheduler

import "time"

// A manner is what is unusual about a place: what makes its delay longer than that of others.
type manner struct {
	owner    uint32
	failures uint8  // net of successes, for the back-off
	ranked   bool   // the queue has tasks of several priorities
	raised   uint64 // serial of the last lease that was out or over when a failure was last counted
	start    int64  // of the last visit, from which the delays count; longAgo if there was none
	slow     int64  // for the latency of that visit; 0 if that is not more than usual
	asked    int64  // by SetDelay; 0 if that is not more than usual
	retry    int64  // when the server says to come back; longAgo if it does not

	// The last task of each priority, if ranked.
	tails [priorities]uint32
}

// A report is an Outcome in the terms of a book.
type report struct {
	skipped, failed bool
	start           int64
	took            time.Duration
	retry           int64
}

// maxAddrFailures bounds the back-off of an address at 64 times its delay. Many hosts may live
// there, and those that are well should not wait for the ill ones, which have a back-off each.
const maxAddrFailures = 6

// charge starts the delays of a place after a visit.
func (b *book) charge(i uint32, v visit, o report) {
	if o.skipped {
		return
	}
	p := b.places.at(i)
	var slow int64
	switch p.kind {
	case aHost:
		slow = times(b.latencyFactor, o.took)
		if slow <= b.delay[aHost] {
			slow = 0
		}
	case aGroup: // which is the caller's own matter, of which servers know nothing
		o.failed, o.retry = false, longAgo
	}
	start := max(o.start, v.at)
	if p.manner == 0 && slow == 0 && !o.failed && o.retry == longAgo {
		p.due = max(p.due, later(start, b.delay[p.kind]))
		return
	}
	m := b.mannerOf(i)
	m.start, m.slow = max(m.start, start), slow
	if m.retry <= v.at {
		m.retry = longAgo
	}
	m.retry = max(m.retry, o.retry)
	b.countFailure(p.kind, m, v, o.failed)
	b.redue(i)
}

// countFailure halves the failures at each success. Of visits that were out at the same time only
// one failure counts: they tell of the same trouble.
func (b *book) countFailure(k kind, m *manner, v visit, failed bool) {
	switch {
	case !failed:
		m.failures /= 2
	case v.serial > m.raised && b.pause(k, m.failures) < b.pause(k, m.failures+1):
		m.failures++
		m.raised = b.serial
	}
}

// pause returns the least delay after so many failures. A host's is doubled by each after the
// first, an address's by each.
func (b *book) pause(k kind, failures uint8) int64 {
	switch {
	case failures == 0 || k == aGroup:
		return 0
	case k == aHost:
		return min(times(float64(uint64(1)<<min(failures-1, 62)), time.Duration(b.backoff)), b.maxBackoff)
	default:
		factor := int(1) << min(failures, maxAddrFailures)
		return min(times(float64(factor), time.Duration(b.delay[k])), b.maxBackoff)
	}
}

// start is charge for a visit that only begins.
func (b *book) start(i uint32, at int64) {
	p := b.places.at(i)
	if p.manner == 0 {
		p.due = max(p.due, later(at, b.delay[p.kind]))
		return
	}
	m := b.manners.at(p.manner)
	m.start = max(m.start, at)
	b.redue(i)
}

// mannerOf returns the manner of a place, which it gets if it has none.
func (b *book) mannerOf(i uint32) *manner {
	p := b.places.at(i)
	if p.manner == 0 {
		p.manner = b.manners.alloc()
		start := int64(longAgo)
		if p.due != longAgo {
			// If due is the end of all time this is not the start, but a longer delay has the same
			// end.
			start = p.due - b.delay[p.kind]
		}
		*b.manners.at(p.manner) = manner{owner: i, start: start, retry: longAgo}
	}
	return b.manners.at(p.manner)
}

// pace returns the delay from one visit to the next.
func (b *book) pace(p *place) int64 {
	usual := b.delay[p.kind]
	if p.manner == 0 {
		return usual
	}
	m := b.manners.at(p.manner)
	d := max(m.slow, m.asked, b.pause(p.kind, m.failures))
	if b.maxDelay > 0 {
		d = min(d, b.maxDelay)
	}
	return max(d, usual)
}

// redue works out anew when the delays of a place have passed, after its manner has changed. The
// manner goes if nothing is unusual any longer.
func (b *book) redue(i uint32) {
	p := b.places.at(i)
	m := b.manners.at(p.manner)
	p.due = longAgo
	if m.start != longAgo {
		p.due = later(m.start, b.pace(p))
	}
	p.due = max(p.due, m.retry)
	if m.isUsual() && (m.raised == 0 || p.out == 0) {
		b.manners.release(p.manner)
		p.manner = 0
	}
}

func (m *manner) isUsual() bool {
	return m.slow == 0 && m.asked == 0 && m.failures == 0 && m.retry == longAgo && !m.ranked
}

// expire forgets the last visit if its delays have passed; what the host asked for stays. It
// requires that nothing is going on at the place. It tells whether a delay still runs.
func (b *book) expire(i uint32) (expired bool) {
	p := b.places.at(i)
	if p.due > b.now {
		return false
	}
	if p.manner == 0 {
		p.due = longAgo
		return true
	}
	m := b.manners.at(p.manner)
	m.start, m.slow, m.failures, m.retry = longAgo, 0, 0, longAgo
	b.redue(i)
	return true
}

// setDelay remembers the delay that a host asked for.
func (b *book) setDelay(name string, d int64) {
	// A host that asks for nothing unusual need not be remembered for it.
	if d <= b.delay[aHost] {
		d = 0
	}
	if b.lookup(aHost, name) == 0 && (d == 0 || b.full()) {
		return
	}
	i := b.use(aHost, name)
	if b.places.at(i).manner == 0 && d == 0 {
		return
	}
	b.mannerOf(i).asked = d
	b.redue(i)
	b.resettleHost(i)
	b.sweep() // as this may be the only call that is ever made
}
