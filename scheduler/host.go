package scheduler

import "strings"

// A host is what the book knows about a host.
type host struct {
	name string

	// The delays count from the start of the last visit, which is longAgo if there was none. They
	// are kept apart, since SetDelay may change one of them while they run.
	start int64
	slow  int64 // for the latency of that visit
	asked int64 // by SetDelay; 0 if that is not more than usual

	timer timer
	head  uint32 // first task of the queue; 0 if it is empty
	tail  uint32 // last task, if there is a first
	next  uint32 // host in the line of an address
	state state
}

// hostID returns the number of a host, which it gives to a new one. A new one is parked.
func (b *book) hostID(name string) uint32 {
	if i, known := b.hostIDs[name]; known {
		return i
	}
	i := b.hosts.alloc()
	// The name is often a part of a URL, which the copy does not keep alive.
	name = strings.Clone(name)
	*b.hosts.at(i) = host{name: name, start: longAgo}
	b.hostIDs[name] = i
	b.inState[parked]++
	return i
}

// setState keeps the figures by state.
func (b *book) setState(i uint32, s state) {
	h := b.hosts.at(i)
	b.inState[h.state]--
	b.inState[s]++
	h.state = s
}

// hostDue returns when the delays of a host have passed.
func (b *book) hostDue(h *host) int64 {
	if h.start == longAgo {
		return longAgo
	}
	return later(h.start, max(b.hostDelay, h.slow, h.asked))
}

// settleHost puts a host where it belongs now. It requires that the host is nowhere: that it has
// just left a wheel, a line or a lease, or is parked.
func (b *book) settleHost(i uint32) {
	h := b.hosts.at(i)
	due := b.hostDue(h)
	if h.head != 0 {
		due = max(due, b.task(h.head).notBefore)
	}
	switch {
	case h.head != 0 && due > b.now:
		b.setState(i, waiting)
		b.waitingHosts.insert(i, due)
	case h.head != 0:
		b.setState(i, ready)
		b.lineUp(i, b.task(h.head).addr)
	case due > b.now:
		b.setState(i, cooling)
		b.coolingHosts.insert(i, due)
	case h.asked > 0:
		b.setState(i, parked)
	default:
		b.inState[h.state]--
		delete(b.hostIDs, h.name)
		b.hosts.release(i)
	}
}

// resettleHost is settleHost for a host of which the queue or the delay has changed. If it is
// ready or leased it stays so: it is looked at again when its turn comes, or when it is released.
func (b *book) resettleHost(i uint32) {
	switch b.hosts.at(i).state {
	case ready, leased:
		return
	case waiting:
		b.waitingHosts.remove(i)
	case cooling:
		b.coolingHosts.remove(i)
	}
	b.settleHost(i)
}

// tooEarly tells whether the delay of a host that was ready has grown so that it is no longer, and
// settles it if so.
func (b *book) tooEarly(i uint32) bool {
	if b.hostDue(b.hosts.at(i)) <= b.now {
		return false
	}
	b.settleHost(i)
	return true
}
