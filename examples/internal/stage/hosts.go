package stage

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/revisit"
)

// A host's share of the queue is time: as many of its pages are in flight as are fetched within the
// horizon, given its delay, its latency and its back-off. Measured in pages, a few hosts that are
// big, slow or down would fill the queue. The rest waits on disk until it is the host's turn.
const Horizon = time.Minute

// RankedRoom is how many pages of a host are in flight at least if pages are ranked: only those in
// flight are compared.
const RankedRoom = 1000

// One in domainShare pages in flight may belong to the same domain, which may have many addresses.
const domainShare = 8

// An address has room for addrRooms times the pages of a host, though it gets no more requests: a
// domain there may have as many pages in flight as it leaves room for others. And at most
// placeHosts hosts of a domain are in flight at an address. Hosts of an address take turns, so a
// farm of thousands of them would leave nothing to its neighbors.
const addrRooms, placeHosts = 2, 8

// hostShare is the share of a host's time, given its delay, that visits to known pages may take.
// The rest is for new pages.
const hostShare = 0.8

// knownShare times the page limit of a host is the maximum number of its known URLs. More are
// dropped.
const knownShare = 2

// barredShare times as many URLs may be known that may not be fetched.
const barredShare = 16

// One in strangersShare pages of the limit of a host may be known from links of other sites only.
// What its own pages and sitemaps name comes first.
const strangersShare = 8

// triesShare times the page limit of a host is the maximum number of requests for its new pages.
const triesShare = 2

// A HostTable holds the state of the crawl for each host, in about 150 bytes each. Its methods are
// safe for concurrent use.
type HostTable struct {
	// Strangers is how many pages of a host may be known that only other sites link to. Do not
	// change it after the first use.
	Strangers int

	// Wait is for how long a crawl without other work waits for a host. Do not change it either.
	Wait time.Duration

	// Overrides have lower limits of pages for some hosts.
	Overrides *Overrides

	delay      time.Duration // between two visits, on the pages' clock
	horizon    time.Duration // likewise
	limit      int           // of pages of a host; 0 means none
	addrRoom   int32         // for pages in flight at an address
	domainRoom int32         // of a registrable domain

	crowded sync.Map // hosts with as many URLs as may be known

	mu      sync.Mutex
	hosts   map[string]*hostEntry
	addrs   map[netip.Addr]*share // with pages in flight or postponed
	domains map[string]*share
	places  map[place]*tenants
	awaited *hostEntry // the last one found that was worth waiting for
	commits uint32
	time    virtualTime

	named  map[string]int      // hosts that an owner's pages have made known, less what has been earned
	naming map[string]struct{} // hosts that were counted there since the last commit
}

// Times in an entry are in Unix milliseconds, and durations in milliseconds, on the pages' clock.
type hostEntry struct {
	share
	site   string     // its owner, or its registrable domain where no owner is known
	by     string     // the site that named it first; "" if none did
	addr   netip.Addr // address of its last page in flight
	known  int32      // pages
	barred int32      // pages that may not be fetched

	strange   int32 // pages that only other sites link to, which count in neither
	offered   int32 // further ones, which may be known, since the last commit
	offeredAt uint32
	taken     int32          // of these, pages that were fetched, or are in flight for the first time
	first     int32          // of these, the ones in flight
	missed    int32          // requests for new pages that got none
	load      revisit.Demand // of its known pages
	domain    *share         // nil while nothing is in flight

	found   int64 // the turn of the next page that is found
	blocked int64 // until when it is not visited
	pace    int32 // between two visits; 0 means the delay of all

	unvisited int32 // pages in the store that were never visited
	postponed int32 // others there that were due
}

// A place is a registrable domain at an address.
type place struct {
	domain string
	addr   netip.Addr
}

// tenants are the pages in flight of a domain at an address.
type tenants struct {
	share
	pages map[string]int32 // in flight, by host
}

// A share is the use of the room for pages in flight by a host, an address or a domain.
type share struct {
	inFlight int32
	hosts    int32 // of a domain: those with pages in flight
	until    int64 // when the last postponed page is due, in Unix milliseconds
}

// NewHostTable returns an empty table for a queue of the given size. The horizon is on the pages'
// clock like the delay.
func NewHostTable(delay, horizon time.Duration, limit, queue int) *HostTable {
	delay = max(delay, time.Millisecond)
	room := int32(min(1+horizon/delay, 1e6))
	strangers := math.MaxInt32
	if limit > 0 {
		strangers = max(limit/strangersShare, 1)
	}
	return &HostTable{
		Strangers: strangers,
		delay:     delay, horizon: horizon, limit: limit,
		addrRoom: addrRooms * room, domainRoom: max(room, int32(queue/domainShare)),
		hosts: map[string]*hostEntry{}, addrs: map[netip.Addr]*share{}, domains: map[string]*share{},
		places: map[place]*tenants{}, time: virtualTime{progress: 1}, named: map[string]int{}, naming: map[string]struct{}{},
	}
}

// room returns how many pages of a host may be in flight.
func (b *HostTable) room(e *hostEntry) int32 {
	return int32(min(1+b.horizon/b.paceOf(e), 1e6))
}

// paceOf returns the time between two visits of a host.
func (b *HostTable) paceOf(e *hostEntry) time.Duration {
	if e.pace == 0 {
		return b.delay
	}
	return time.Duration(e.pace) * time.Millisecond
}

// lead is how much earlier than at its turn a page is due. Pages come from disk by the slot, and a
// host should not run out of them.
func (b *HostTable) lead() int64 { return b.horizon.Milliseconds() / 2 }

// Advance sets the time that the pages' clock shows, and the slot up to which pages have been handed
// out. Turns are counted from that slot: if the crawler is too slow for all pages that are due, the
// hosts take turns at their usual pace in that slower time. The table starts in 1970.
func (b *HostTable) Advance(now, slot time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.time.advance(now.UnixMilli(), slot.UnixMilli(), b.lead())
}

// A virtualTime is a time that passes more slowly while there is more to do than can be done.
type virtualTime struct {
	now, virtual   int64
	progress       float64 // of virtual in a unit of real time: a moving average
	since, started int64   // both times at the last change of progress
}

func (v *virtualTime) advance(now, virtual, every int64) {
	if passed := now - v.since; passed >= every {
		latest := float64(virtual-v.started) / float64(passed)
		v.progress = min(max((v.progress+latest)/2, 0.01), 1)
		v.since, v.started = now, virtual
	}
	v.now, v.virtual = now, virtual
}

// of returns the virtual time at a later time, if nothing delays it.
func (v *virtualTime) of(t int64) int64 { return v.virtual + max(t-v.now, 0) }

// entry requires that b.mu is held.
func (b *HostTable) entry(host string) *hostEntry {
	e := b.hosts[host]
	if e == nil {
		e = &hostEntry{site: siteOf(host)}
		b.hosts[host] = e
	}
	return e
}

// Discovered counts a new page. One that may not be fetched, as far as is known, does not crowd out
// those that may.
func (b *HostTable) Discovered(it Item, allowed bool) {
	host := weburl.Host(it.URL)
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if from := b.hosts[weburl.Host(it.From)]; from != nil && e.by == "" && e.known+e.barred+e.strange == 0 {
		e.by = from.site
	}
	switch {
	case it.Strange:
		e.strange++
	case allowed:
		e.known++
	default:
		e.barred++
	}
	if most := knownShare * b.limitOf(host); most > 0 && (int(e.known) >= most || int(e.barred) >= barredShare*most) {
		b.crowded.Store(host, nil)
	}
}

// limitOf returns how many pages of a host may be fetched; 0 means any number.
func (b *HostTable) limitOf(host string) int {
	if own := b.Overrides.Of(host).MaxPages; own > 0 && (b.limit == 0 || own < b.limit) {
		return own
	}
	return b.limit
}

// Found says that a page was found which is due at its Turn. It waits until Arrived is called.
func (b *HostTable) Found(it Item, allowed bool) {
	b.Discovered(it, allowed)
	b.mu.Lock()
	defer b.mu.Unlock()
	host := weburl.Host(it.URL)
	e, limit := b.entry(host), b.limitOf(host)
	e.unvisited++
	if allowed && (limit == 0 || int(e.known) <= limit) { // the others take little time
		e.found = max(e.found, b.time.virtual) + max(min(b.delay, b.paceOf(e)).Milliseconds(), 1)
	}
}

// Turn returns when a page of a host is due if it turns out to be new. It is the next page of its
// host, whatever else waits: the store is read by turns, so hosts with few pages need not wait
// behind those with many.
func (b *HostTable) Turn(url string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[weburl.Host(url)]; e != nil {
		turn := min(e.found-b.lead(), b.time.virtual+longestTurn*b.horizon.Milliseconds())
		return time.UnixMilli(max(b.time.virtual, turn, b.time.of(e.blocked)))
	}
	return time.UnixMilli(b.time.virtual)
}

// IsCrowded reports whether the host of a URL has its maximum number of known URLs. It takes no
// lock, as it is called for each link.
func (b *HostTable) IsCrowded(url string) bool {
	_, crowded := b.crowded.Load(weburl.Host(url))
	return crowded
}

// TakesStrange reports whether a page that only other sites link to may be known. The front page of
// a host may in any case, at the usual ports: it leads to the others, however many links strangers have made
// up.
func (b *HostTable) TakesStrange(url string) bool {
	host := weburl.Host(url)
	if url == "http://"+host+"/" || url == "https://"+host+"/" {
		return true
	}
	strangers := b.Strangers
	if own := b.limitOf(host); own < b.limit || b.limit == 0 && own > 0 {
		strangers = min(strangers, max(own/strangersShare, 1))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if e.offeredAt != b.commits {
		e.offered, e.offeredAt = 0, b.commits
	}
	if int(e.strange+e.offered) >= strangers {
		return false
	}
	e.offered++
	return true
}

// Committed says that Discovered was called for all pages that are new.
func (b *HostTable) Committed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commits++
	clear(b.naming)
}

// Recall restores a page that was in flight in an earlier run, and may have been fetched.
func (b *HostTable) Recall(host string, fetched bool, interval time.Duration, retryAt int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if fetched {
		if e.taken++; e.taken == 1 {
			b.earn(e)
		}
	}
	if interval > 0 {
		e.load.Add(interval)
	}
	e.until = max(e.until, retryAt*1000)
}

// An admission is the result of Take for a page that is due.
type admission struct {
	Full    bool  // the host has as many pages as it may have; it is in flight all the same
	RetryAt int64 // when to try again, in Unix time; 0 if it is in flight now
}

// Take makes a page in flight. If its host is not visited now, or if a host, an address or a domain
// has enough in flight, its pages are postponed one by one, starting when it will be done with the
// current ones: so each is due when there is time for it. A zero addr is one that is not known yet,
// or that has no delay; see Move.
func (b *HostTable) Take(host string, addr netip.Addr, first bool) admission {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if limit := b.limitOf(host); first && limit > 0 {
		switch fetched := int(e.taken - e.first); {
		case fetched >= limit || fetched+int(e.missed) >= triesShare*limit:
			b.enter(host, e, addr)
			return admission{Full: true}
		case int(e.taken) >= limit: // of those in flight, some may turn out to be no pages
			return admission{RetryAt: b.postponeOf(e)}
		}
	}
	domain, at := b.domains[e.site], place{e.site, addr}
	switch {
	case e.blocked > b.time.now || e.inFlight >= b.room(e):
		return admission{RetryAt: b.postponeOf(e)}
	case !b.hasRoom(at, host):
		return admission{RetryAt: b.postponeAt(at)}
	case domain != nil && domain.inFlight >= b.domainRoom:
		// Its hosts are visited concurrently if they have separate addresses.
		return admission{RetryAt: b.postpone(domain, b.delay/time.Duration(max(domain.hosts, 1)))}
	}
	if first {
		e.taken++
		e.first++
	}
	b.enter(host, e, addr)
	return admission{}
}

// Visited records how long a host takes for a visit and the delay after it, or that it is not visited
// before a time, unless that is zero.
func (b *HostTable) Visited(host string, pace time.Duration, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	e.blocked = max(until.UnixMilli(), 0)
	if pace > 0 {
		longest := time.Duration(math.MaxInt32) * time.Millisecond
		pace = (3*b.paceOf(e) + min(pace, longest)) / 4 // a single slow page says little
		e.pace = max(int32(pace/time.Millisecond), 1)
	}
}

// TakeBack returns when a page is due that was in flight, as its host is not visited for long.
func (b *HostTable) TakeBack(host string, addr netip.Addr) (retryAt int64) {
	b.Leave(host, addr)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.postponeOf(b.entry(host))
}

// Settle ends the first time in flight of a page. One that was not fetched takes no place of its
// host's limit. requested reports whether that took a request.
func (b *HostTable) Settle(host string, fetched, requested bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	e.first--
	if fetched && e.taken-e.first == 1 {
		b.earn(e)
	}
	if !fetched {
		e.taken--
		if requested {
			e.missed++
		}
	}
}

// LastAddr returns the address of a host when a page of it was last in flight. It is the best guess
// while the resolver does not know: for pages without an address, room is not limited by address.
func (b *HostTable) LastAddr(host string) netip.Addr {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return e.addr
	}
	return netip.Addr{}
}

// longestTurn bounds the time to the turn of a page, in horizons: a day. If its host becomes faster, or -delay
// shorter, it is not found out before.
const longestTurn = 24 * 60

// postponeOf assigns the next turn of a host to a page. It requires that b.mu is held.
func (b *HostTable) postponeOf(e *hostEntry) int64 {
	e.until = max(e.until, b.time.of(e.blocked))
	return b.postpone(&e.share, b.paceOf(e))
}

// postpone assigns the next turn of a share to a page, and returns it in Unix time. It requires that
// b.mu is held.
//
// The turns of a slow host are as far apart as its visits. If the crawler has more to do than it
// can, they are as far apart as those of other hosts.
func (b *HostTable) postpone(s *share, pace time.Duration) int64 {
	each := max(int64(float64(pace.Milliseconds())*b.time.progress), min(pace, b.delay).Milliseconds(), 1)
	s.until = max(s.until, b.time.virtual+each*int64(s.inFlight)-b.lead()) + each
	s.until = min(s.until, b.time.virtual+longestTurn*b.horizon.Milliseconds())
	return s.until/1000 + 1
}

// UpdateLoad records that the interval of a page changes, and returns the factor by which all
// intervals of its host have to grow (paper R §5.2).
func (b *HostTable) UpdateLoad(host string, before, after time.Duration) (stretch float64) {
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

// Fetched returns how many pages were fetched.
func (b *HostTable) Fetched() (pages int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.hosts {
		pages += int(e.taken - e.first)
	}
	return pages
}

// Of returns how many pages of a host have been in flight, and how many visits a day they need.
func (b *HostTable) Of(host string) (pages int, perDay float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return int(e.taken), e.load.PerDay()
	}
	return 0, 0
}

// Known returns how many pages of a host are known.
func (b *HostTable) Known(host string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return int(e.known)
	}
	return 0
}

// Largest returns how many known pages the host with the most has.
func (b *HostTable) Largest() (pages int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.hosts {
		pages = max(pages, int(e.known))
	}
	return pages
}

// Count returns how many hosts there are.
func (b *HostTable) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.hosts)
}
