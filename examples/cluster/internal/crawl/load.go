package crawl

import (
	"net/netip"
	"sync"
	"time"
)

// loads counts the URLs of each host and address in a partition's window. Each may have only as
// many as can be fetched within the time ahead: otherwise the URLs of a few hosts with long delays
// would fill the window, and hold up all others. Further URLs are postponed, each to the time at
// which there will be room for it, or by a day. Its methods are safe for concurrent use.
type loads struct {
	ahead time.Duration

	mu    sync.Mutex
	hosts map[string]*load
	addrs map[netip.Addr]*load
}

// A load is the work of one host or address.
type load struct {
	queued int
	next   time.Time // when the next postponed URL may come back
}

// ahead is how far a window reaches for one host or address: URLs that could not be fetched within that
// time are postponed.
const ahead = 10 * time.Minute

// minAhead is what a host may always have: one URL in flight, and one that follows.
const minAhead = 2

func newLoads(ahead time.Duration) *loads {
	return &loads{ahead: ahead, hosts: map[string]*load{}, addrs: map[netip.Addr]*load{}}
}

// take adds a URL of a host with a delay, at an address with a delay of its own. If there is no
// room, it returns the time until which to postpone the URL. No URL of the host is fetched before
// from.
func (l *loads) take(
	host string, addr netip.Addr, hostDelay, addrDelay time.Duration, from, now time.Time,
) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, a := entry(l.hosts, host), entry(l.addrs, addr)
	horizon := now.Add(l.ahead)
	if h.queued < l.limit(hostDelay) && a.queued < l.limit(addrDelay) && !from.After(horizon) {
		h.queued++
		a.queued++
		return time.Time{}
	}
	// Both have slots at intervals of their delays. A URL takes a slot of each.
	until = latest(horizon, from, h.next, a.next)
	if far := latest(from, now.Add(maxRetry)); until.After(far) {
		until = far // without a slot: if the delay becomes shorter, it is not found out before
	} else {
		h.next, a.next = until.Add(max(hostDelay, 0)), until.Add(max(addrDelay, 0))
	}
	l.drop(host, addr, now)
	return until
}

// done makes room for another URL.
func (l *loads) done(host string, addr netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.hosts[host]; h != nil && h.queued > 0 {
		h.queued--
	}
	if a := l.addrs[addr]; a != nil && a.queued > 0 {
		a.queued--
	}
	l.drop(host, addr, now)
}

// drop forgets a host or address that has neither work nor slots. It requires that l.mu is held.
func (l *loads) drop(host string, addr netip.Addr, now time.Time) {
	if h := l.hosts[host]; h != nil && h.queued == 0 && h.next.Before(now) {
		delete(l.hosts, host)
	}
	if a := l.addrs[addr]; a != nil && a.queued == 0 && a.next.Before(now) {
		delete(l.addrs, addr)
	}
	// The slots of many hosts without work are remembered. If one is forgotten, a URL comes back
	// before there is room, and is postponed again.
	if len(l.hosts) > maxSlow {
		prune(l.hosts)
	}
	if len(l.addrs) > maxSlow {
		prune(l.addrs)
	}
}

// limit returns how many URLs can be fetched within the time ahead.
func (l *loads) limit(delay time.Duration) int {
	if delay <= 0 {
		return maxWindow
	}
	return int(max(minAhead, min(l.ahead/delay, maxWindow)))
}

func entry[K comparable](m map[K]*load, key K) *load {
	e := m[key]
	if e == nil {
		e = &load{}
		m[key] = e
	}
	return e
}

// prune removes hosts and addresses without work.
func prune[K comparable](m map[K]*load) {
	for key, e := range m {
		if e.queued == 0 {
			delete(m, key)
		}
	}
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
