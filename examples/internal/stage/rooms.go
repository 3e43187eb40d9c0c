package stage

import "net/netip"

// hasRoom reports whether one more page of a host may be in flight at a place. It requires that
// b.mu is held.
func (b *HostTable) hasRoom(at place, host string) bool {
	if !at.addr.IsValid() {
		return true
	}
	all, own := b.addrs[at.addr], b.places[at]
	if own == nil {
		return all == nil || all.inFlight < b.addrRoom
	}
	return own.inFlight < b.addrRoom-all.inFlight &&
		(own.pages[host] > 0 || len(own.pages) < placeHosts)
}

// postponeAt is postpone for a place. It requires that b.mu is held.
func (b *HostTable) postponeAt(at place) int64 {
	s := b.addrs[at.addr]
	if own := b.places[at]; own != nil {
		s = &own.share
	}
	return b.postpone(s, b.delay)
}

// enter requires that b.mu is held.
func (b *HostTable) enter(host string, e *hostEntry, addr netip.Addr) {
	if e.domain == nil {
		if e.domain = b.domains[e.site]; e.domain == nil {
			e.domain = &share{}
			b.domains[e.site] = e.domain
		}
	}
	if e.inFlight++; e.inFlight == 1 {
		e.domain.hosts++
	}
	e.domain.inFlight++
	b.enterAddr(host, addr)
}

// enterAddr requires that b.mu is held.
func (b *HostTable) enterAddr(host string, addr netip.Addr) {
	if !addr.IsValid() {
		return
	}
	if b.addrs[addr] == nil {
		b.addrs[addr] = &share{}
	}
	b.addrs[addr].inFlight++
	e := b.entry(host)
	e.addr = addr
	at := place{e.site, addr}
	own := b.places[at]
	if own == nil {
		own = &tenants{pages: map[string]int32{}}
		b.places[at] = own
	}
	own.inFlight++
	own.pages[host]++
}

// Hold records that a page is in flight, regardless of room, as Take does.
func (b *HostTable) Hold(host string, addr netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(host, b.entry(host), addr)
}

// HasRoom reports whether a page of a host may be visited before it is due. Its host's own room does not
// count, as a sitemap announces many changes at once.
func (b *HostTable) HasRoom(host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	domain := b.domains[b.entry(host).site]
	return domain == nil || domain.inFlight < b.domainRoom
}

// Leave records that a page is no longer in flight.
func (b *HostTable) Leave(host string, addr netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	e.domain.inFlight--
	if e.inFlight--; e.inFlight == 0 {
		e.domain.hosts--
		forgetShare(b.domains, e.site)
		e.domain = nil
	}
	b.leaveAddr(host, addr)
}

// leaveAddr requires that b.mu is held.
func (b *HostTable) leaveAddr(host string, addr netip.Addr) {
	if !addr.IsValid() {
		return
	}
	b.addrs[addr].inFlight--
	forgetShare(b.addrs, addr)
	at := place{b.entry(host).site, addr}
	own := b.places[at]
	own.inFlight--
	if own.pages[host]--; own.pages[host] == 0 {
		delete(own.pages, host)
	}
	if own.inFlight == 0 {
		delete(b.places, at)
	}
}

// forgetShare removes a share with nothing in flight. The due time of its postponed pages no longer
// matters then.
func forgetShare[K comparable](shares map[K]*share, key K) {
	if s := shares[key]; s != nil && s.inFlight == 0 {
		delete(shares, key)
	}
}

// Move records that the address of a page in flight has changed. Either address may be the zero
// Addr: one that is not known yet, or one whose hosts do not share a delay. If there is no room, it
// returns when to try again; the page is in flight until Leave is called.
func (b *HostTable) Move(host string, from, to netip.Addr) (retryAt int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := (place{b.entry(host).site, to}); !b.hasRoom(at, host) {
		return b.postponeAt(at)
	}
	b.leaveAddr(host, from)
	b.enterAddr(host, to)
	return 0
}
