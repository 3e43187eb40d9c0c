package engine

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"time"
)

// # Addresses of several partitions
//
// The hosts of an address belong to one partition, its natural owner. But a host may move to an
// address while its partition stays the same, and then two partitions use one address. So a
// partition borrows an address before each request:
//
// Its natural owner needs no lease as long as there is none in the table. Any other partition writes
// a lease first. Until every member has reported that it has seen it, nobody uses that lease: the
// natural owner may not know yet that it needs one from now on. From then on, whoever has the lease
// uses the address for a while, as its owner's session is valid, and waits for one delay before the
// first request. It does not matter when the previous holder has made its last one: it was before it
// gave the lease back, or before its session ended.

// tenure is how many requests a partition may make until it gives an address back.
const (
	tenure    = 10
	maxTenure = 30 * time.Second
	// restTTL is how long the lease of an address outlives its last use. Then its natural owner needs
	// no lease any more.
	restTTL   = time.Hour
	markerTTL = time.Minute // see jet.MakeTable
)

// A hold is the lease of an address that a partition of this member has.
type hold struct {
	lease    seenLease
	ready    time.Time // when the first request may be made
	until    time.Time // when others get a chance
	inFlight int
}

func addrKey(addr netip.Addr) string { return "addr." + addr.Unmap().WithZone("").StringExpanded() }

// Borrow reports whether a partition may make a request to an address now, of which natural says
// whether it is the natural owner. The caller calls done after the request. Otherwise it tries again
// later; delay is the least interval between two requests to the address.
func (m *Member) Borrow(
	ctx context.Context, c Claim, addr netip.Addr, natural bool, delay time.Duration,
) (done func(), ok bool) {
	key := addrKey(addr)
	// In this order, so that an entry between the two calls counts as not seen.
	seen := m.view.last()
	lease, known := m.view.lease(key)
	if natural && !known {
		return m.enter(seen), true
	}
	id := m.ID()
	if lease.Owner != id || lease.Part != c.Part {
		m.mu.Lock()
		rest := m.resting[key].After(time.Now())
		m.mu.Unlock()
		if m.view.available(lease.Lease) && !rest && m.Check() == nil {
			value, _ := json.Marshal(Lease{Owner: id, Part: c.Part, Epoch: lease.Epoch + 1}) // cannot fail
			m.table.Try(ctx, key, value, lease.revision)
		}
		return nil, false
	}
	if !m.view.allSeen(lease.revision) {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[key]
	if h == nil || h.lease != lease || h.ready.IsZero() {
		now := time.Now()
		h = &hold{
			lease: lease, ready: now.Add(delay), until: now.Add(delay + min(tenure*delay, maxTenure)),
		}
		m.held[key] = h
	}
	if now := time.Now(); now.Before(h.ready) || now.After(h.until) {
		return nil, false
	}
	h.inFlight++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		h.inFlight--
	}, true
}

// enter notes that a request is made without a lease, by one who had seen the table up to a
// revision. Until done is called, this member reports to have seen no more.
func (m *Member) enter(seen uint64) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entered[seen]++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.entered[seen]--; m.entered[seen] == 0 {
			delete(m.entered, seen)
		}
	}
}

// seen returns the revision of the table that all requests of this member heed.
func (m *Member) seen() uint64 {
	seen := m.view.last()
	m.mu.Lock()
	defer m.mu.Unlock()
	for revision := range m.entered {
		seen = min(seen, revision)
	}
	return seen
}

// giveBack returns the addresses whose time is over, and those that no partition has asked for since
// the lease was written, or whose return has failed.
func (m *Member) giveBack(ctx context.Context) {
	mine := m.view.addresses(m.ID())
	m.mu.Lock()
	for key, lease := range mine {
		if m.held[key] == nil {
			m.held[key] = &hold{lease: lease, until: time.Now().Add(maxTenure)}
		}
	}
	maps.DeleteFunc(m.resting, func(_ string, until time.Time) bool { return time.Now().After(until) })
	over := map[string]*hold{}
	for key, h := range m.held {
		if h.inFlight == 0 && time.Now().After(h.until) {
			over[key] = h
			delete(m.held, key)
			m.resting[key] = time.Now().Add(2*lookEvery + m.opts.TTL/2) // others come first
		}
	}
	m.mu.Unlock()
	for key, h := range over {
		m.table.TryFor(ctx, key, returned(h.lease.Epoch), h.lease.revision, restTTL)
	}
}
