package stage

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/revisit"
)

// minHostRoom is how many pages of a host are in flight at one time, at least. The scheduler needs
// only the next one; the others would keep pages of other hosts from their turn. What is more waits
// in the files. Where the delay is so short that these are through before some slots are over,
// there are more, lest the host waits for its pages.
const minHostRoom, slotsInFlight = 1000, 5

// domainShare is the part of all pages in flight that an owner's domain may have: it may have many
// addresses.
const domainShare = 8

// An address has room for addrRooms times the pages of a host, though it gets no more requests: a
// domain there may have as many pages in flight as room is left for others. And no more than
// placeHosts hosts of one domain are in flight at one address. Hosts of an address take turns, so
// that a farm of thousands of them would leave nothing for its neighbors.
const addrRooms, placeHosts = 2, 8

// hostShare is the part of a host's time, as its delay makes it, that known pages may ask for. The
// rest is for pages that are new.
const hostShare = 0.8

// knownShare times the limit of pages of a host is how many of its URLs are known at most: what
// it leads to beyond that is dropped.
const knownShare = 2

// A HostBook knows what the crawl asks of each host: some 150 bytes for each. Its methods are safe
// for concurrent use.
type HostBook struct {
	delay      time.Duration // between two visits, on the pages' clock
	limit      int           // of pages of a host; 0 is none
	room       int32         // for pages in flight of a host, or of an address
	domainRoom int32         // of a registrable domain

	crowded sync.Map // hosts with as many URLs as may be known

	mu      sync.Mutex
	hosts   map[string]*hostEntry
	addrs   map[netip.Addr]*share // of which something is in flight or put off
	domains map[string]*share
	places  map[place]*tenants
	until   int64 // the latest until of all
}

type hostEntry struct {
	share
	site   string         // its owner, or its registrable domain where no owner is known
	addr   netip.Addr     // where a page of it was in flight last
	known  int32          // pages
	taken  int32          // of them, those that were in flight at some time
	load   revisit.Demand // what its known pages ask for
	domain *share         // nil while nothing is in flight
}

// A place is a registrable domain at an address.
type place struct {
	domain string
	addr   netip.Addr
}

// tenants are what a domain has in flight at an address.
type tenants struct {
	share
	pages map[string]int32 // in flight, by host
}

// A share is what the pages of a host, an address or a domain have of the room for pages in flight.
type share struct {
	inFlight int32
	hosts    int32 // of a domain: those with pages in flight
	until    int64 // when the last page that was put off is due, in Unix milliseconds
}

// NewHostBook returns an empty book for a queue of that size.
func NewHostBook(delay, unit time.Duration, limit, queue int) *HostBook {
	delay = max(delay, time.Millisecond)
	room := max(minHostRoom, int32(min(slotsInFlight*unit/delay, 1e6)))
	return &HostBook{
		delay: delay, limit: limit, room: room, domainRoom: max(room, int32(queue/domainShare)),
		hosts: map[string]*hostEntry{}, addrs: map[netip.Addr]*share{}, domains: map[string]*share{},
		places: map[place]*tenants{},
	}
}

// entry requires that b.mu is held.
func (b *HostBook) entry(host string) *hostEntry {
	e := b.hosts[host]
	if e == nil {
		e = &hostEntry{site: siteOf(host)}
		b.hosts[host] = e
	}
	return e
}

// Discovered counts a page that was not known before.
func (b *HostBook) Discovered(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if e.known++; b.limit > 0 && int(e.known) == knownShare*b.limit {
		b.crowded.Store(host, nil)
	}
}

// IsCrowded reports whether no more URLs of a URL's host are to be known. It takes no lock: each
// link asks.
func (b *HostBook) IsCrowded(url string) bool {
	_, crowded := b.crowded.Load(weburl.Host(url))
	return crowded
}

// Recall notes a page of an earlier run that was in flight then.
func (b *HostBook) Recall(host string, interval time.Duration, putOff int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	e.taken++
	if interval > 0 {
		e.load.Add(interval)
	}
	e.until = max(e.until, putOff*1000)
	b.until = max(b.until, e.until)
}

// admission is what becomes of a page that is due.
type admission struct {
	Full   bool  // the host has as many pages as it may have; it is in flight all the same
	PutOff int64 // when to try again, in Unix time; 0 if it is in flight now
}

// Take lets a page be in flight. A host, an address or a domain that has enough in flight is given
// its pages back one by one, from when it will be through with what it has: so each comes when
// there is time for it. A zero addr is one that is not known yet, or that counts for no delay; see
// Move.
func (b *HostBook) Take(host string, addr netip.Addr, first bool, now time.Time) admission {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if first {
		e.taken++
		if b.limit > 0 && int(e.taken) > b.limit {
			b.enter(host, e, addr)
			return admission{Full: true}
		}
	}
	domain, at := b.domains[e.site], place{e.site, addr}
	switch {
	case e.inFlight >= b.room:
		return admission{PutOff: b.putOff(&e.share, b.delay, now)}
	case !b.hasRoom(at, host):
		return admission{PutOff: b.putOffAt(at, now)}
	case domain != nil && domain.inFlight >= b.domainRoom:
		// Its hosts are visited at the same time, as far as they have addresses of their own.
		return admission{PutOff: b.putOff(domain, b.delay/time.Duration(max(domain.hosts, 1)), now)}
	}
	b.enter(host, e, addr)
	return admission{}
}

// Postpone notes that a page is put off for another reason than that there is no room, and returns
// the time in Unix time.
func (b *HostBook) Postpone(until time.Time) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = max(b.until, until.UnixMilli())
	return until.Unix()
}

// LastAddr returns the address that a host had when a page of it was last in flight. It is the best
// guess while the resolver does not know: pages at no address would have all the room that there is.
func (b *HostBook) LastAddr(host string) netip.Addr {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return e.addr
	}
	return netip.Addr{}
}

// putOff returns when the next page of a share is due. It requires that b.mu is held.
func (b *HostBook) putOff(s *share, pause time.Duration, now time.Time) int64 {
	each := max(pause.Milliseconds(), 1)
	s.until = max(s.until, now.UnixMilli()+each*int64(s.inFlight)) + each
	b.until = max(b.until, s.until)
	return s.until/1000 + 1
}

// hasRoom reports whether one more page of a host may be in flight at a place. It requires that
// b.mu is held.
func (b *HostBook) hasRoom(at place, host string) bool {
	if !at.addr.IsValid() {
		return true
	}
	all, own := b.addrs[at.addr], b.places[at]
	if own == nil {
		return all == nil || all.inFlight < addrRooms*b.room
	}
	return own.inFlight < addrRooms*b.room-all.inFlight &&
		(own.pages[host] > 0 || len(own.pages) < placeHosts)
}

// putOffAt is putOff for a place. It requires that b.mu is held.
func (b *HostBook) putOffAt(at place, now time.Time) int64 {
	s := b.addrs[at.addr]
	if own := b.places[at]; own != nil {
		s = &own.share
	}
	return b.putOff(s, b.delay, now)
}

// enter requires that b.mu is held.
func (b *HostBook) enter(host string, e *hostEntry, addr netip.Addr) {
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
func (b *HostBook) enterAddr(host string, addr netip.Addr) {
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

// Hold notes that a page is in flight, whatever the room, as take does.
func (b *HostBook) Hold(host string, addr netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(host, b.entry(host), addr)
}

// Leave notes that a page is no longer in flight.
func (b *HostBook) Leave(host string, addr netip.Addr) {
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
func (b *HostBook) leaveAddr(host string, addr netip.Addr) {
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

// forgetShare removes a share of which nothing is in flight. When it is through with what was put
// off does not matter then.
func forgetShare[K comparable](shares map[K]*share, key K) {
	if s := shares[key]; s != nil && s.inFlight == 0 {
		delete(shares, key)
	}
}

// Move notes that a page in flight is at another address than before. Either may be the zero Addr:
// one that is not known yet, or one whose hosts do not share a delay. If there is no room, it
// returns when to try again; the page is in flight until Leave is called.
func (b *HostBook) Move(host string, from, to netip.Addr, now time.Time) (putOff int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := (place{b.entry(host).site, to}); !b.hasRoom(at, host) {
		return b.putOffAt(at, now)
	}
	b.leaveAddr(host, from)
	b.enterAddr(host, to)
	return 0
}

// Book notes that a page will be visited at another interval than before, and returns by how much
// all intervals of its host have to grow (paper R §5.2).
func (b *HostBook) Book(host string, before, after time.Duration) (stretch float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if before > 0 {
		e.load.Remove(before)
	}
	if after > 0 {
		e.load.Add(after)
	}
	return e.load.Stretch(hostShare * float64(24*time.Hour) / float64(b.delay))
}

// Pending reports whether some page that was put off is not due yet.
func (b *HostBook) Pending(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until/1000 >= now.Unix()
}

// Of returns how many pages of a host were in flight at some time, and how many visits a day they
// ask for.
func (b *HostBook) Of(host string) (pages int, perDay float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return int(e.taken), e.load.PerDay()
	}
	return 0, 0
}

// Known returns how many pages of a host are known.
func (b *HostBook) Known(host string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return int(e.known)
	}
	return 0
}

// Busiest returns the n hosts with the most known pages, and how many the first one has.
func (b *HostBook) Busiest(n int) (hosts []string, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hosts = slices.SortedFunc(maps.Keys(b.hosts), func(a, c string) int {
		return cmp.Or(cmp.Compare(b.hosts[c].known, b.hosts[a].known), cmp.Compare(a, c))
	})
	if len(hosts) > 0 {
		most = int(b.hosts[hosts[0]].known)
	}
	return hosts[:min(n, len(hosts))], most
}

// Count returns how many hosts there are.
func (b *HostBook) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.hosts)
}
