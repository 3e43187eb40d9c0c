package robots

import (
	"container/list"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Cache holds the robots.txt of many hosts, each for as long as RFC 9309 (2.4) permits. Its methods
// are safe for concurrent use. It keeps no goroutine running.
//
// [Cache.Allowed] and [Cache.Load] wait and fetch. [Cache.Get], [Cache.Lookup] and [Cache.Store]
// never wait. All of them may be mixed: there is at most one request in flight per host.
type Cache struct {
	options   Options
	transport http.RoundTripper

	mu      sync.Mutex
	hosts   map[string]*host // by origin
	idle    lane             // no request in flight
	long    lane             // likewise, with a long file
	failing lane             // likewise, those that could not be reached: they may have asked for a pause
	given   list.List        // of *host: Lookup or Store returned the request; oldest first
	bytes   int              // the cost of all hosts
	flights uint64           // number of the last flight
}

// A lane is a list of *host, the most recently used first, and what they cost. Somebody may invent hosts
// that fail, or have the longest files, for the price of their names: so the hosts in the lanes for these
// keep at most half of the cache each while there are others to go.
type lane struct {
	list.List
	bytes int
}

// longCost is what a host costs whose file is long. Most files have a few hundred bytes.
const longCost = 64 << 10

// A host is its state and the request that is in flight for it.
type host struct {
	state
	origin string
	cost   int

	rules robotstxt.Rules // for the cache's agent, perhaps of an earlier file

	flight   Request // Flight is 0 if no request is in flight
	began    time.Time
	answered uint64        // the last flight whose response was taken, or that was before the host
	place    *list.Element // in its lane or given; nil while Load waits for the response
	lane     *lane         // nil while a request is in flight
	landed   *landing      // made when a Load waits, closed when the flight ends
	lead     *lead         // of the last Loads, if none got to the end of the redirects
}

// A lead is where a redirect led that a Load could not follow. The next flight starts there, or a host
// would be asked again for each page while the one that it names is paused, and no caller has time to
// wait for that.
type lead struct {
	url string
	hop int
	at  time.Time // when the redirects began
}

// A landing is the end of a flight that calls of Load wait for.
type landing struct {
	done chan struct{}
	err  error // of a local failure, which is that of the waiting calls as well
}

// NewCache returns an empty cache.
func NewCache(o Options) *Cache {
	o = o.withDefaults()
	c := &Cache{options: o, transport: o.Client.Transport, hosts: make(map[string]*host)}
	if c.transport == nil {
		c.transport = http.DefaultTransport
	}
	return c
}

// Answer is what a [Cache] knows about a URL. The zero Answer means that a request is in flight.
type Answer struct {
	Known   bool            // whether Rules are valid
	Rules   robotstxt.Rules // for Options.Agent; they forbid everything unless Known
	Request *Request        // if not nil, the caller must make it and pass the response to Store
}

// with calls f with the host of a URL, if there is one, while it holds c.mu. All unexported methods
// below require that c.mu is held.
func (c *Cache) with(url string, f func(h *host)) {
	origin, err := rep.Origin(url)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[origin]; h != nil {
		f(h)
	}
}

// Get returns the rules for a URL if they are known. It never waits and starts no request.
func (c *Cache) Get(url string, now time.Time) (rules robotstxt.Rules, known bool) {
	c.with(url, func(h *host) {
		if known = h.fresh(now, &c.options); known {
			rules = c.use(h).Rules
		}
	})
	return rules, known
}

// Entry returns what is known about the host of a URL, if anything.
func (c *Cache) Entry(url string) (e Entry, known bool) {
	var s state
	c.with(url, func(h *host) { s = h.state })
	return s.entry(), s.known()
}

// InFlight returns the Request that is in flight for a URL's host, if any. A caller that did not
// keep the Request needs it to Store the response.
func (c *Cache) InFlight(url string) (req Request, found bool) {
	c.with(url, func(h *host) { req = h.flight })
	return req, req.Flight != 0
}

// Lookup returns the rules for a URL, or the Request that fetches them, or neither if that request
// is already in flight. It never waits. The caller must pass the response to [Cache.Store], or call
// [Cache.Abandon]. If it does neither, Lookup returns the Request again after Options.Patience.
//
// The error is [robotstxt.ErrLocate], or [ErrFull] if the requests in flight alone take up
// Options.MaxBytes.
func (c *Cache) Lookup(url string, now time.Time) (Answer, error) {
	origin, err := rep.Origin(url)
	if err != nil {
		return Answer{}, err
	}
	answer, _, err := c.lookup(origin, now, true)
	return answer, err
}

// lookup also returns the request that is in flight, whoever has it. If the caller has no room for what
// waits, the answer is what is known, or ErrFull. It takes c.mu itself.
func (c *Cache) lookup(origin string, now time.Time, room bool) (Answer, Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[origin]; !room && (h == nil || !h.fresh(now, &c.options)) {
		return Answer{}, Request{}, ErrFull
	}
	answer, h := c.ask(origin, now)
	if answer.Request == nil {
		return answer, h.flight, nil
	}
	h.place = c.given.PushBack(h)
	c.evict(nil)
	c.evictLost(now)
	if c.bytes > c.options.MaxBytes && c.given.Len() > 1 {
		c.land(h, nil)
		if h.known() {
			c.evict(h) // what is known stays, to be asked for again when there is room
		} else {
			c.drop(h)
		}
		return Answer{}, Request{}, ErrFull
	}
	return answer, h.flight, nil
}

// ask returns the answer if it is known, nothing if a request is in flight, and otherwise starts a
// flight.
func (c *Cache) ask(origin string, now time.Time) (Answer, *host) {
	h := c.hosts[origin]
	switch {
	case h == nil:
	case h.fresh(now, &c.options):
		return c.use(h), h
	case h.flight.Flight != 0 && !c.lost(h, now):
		return Answer{}, h
	}
	h = c.launch(origin, now)
	return h.needed(), h
}

// lost reports whether a flight has been out for too long. That of a Load never is, since its
// caller waits and ends it in any case. One that began far in the future did so by a wrong clock.
func (c *Cache) lost(h *host, now time.Time) bool {
	patience, out := c.options.Patience, now.Sub(h.began)
	return h.place != nil && patience >= 0 && (out >= patience || out < -patience)
}

// use returns the current rules and marks the host as most recently used.
func (c *Cache) use(h *host) Answer {
	if h.lane != nil {
		h.lane.MoveToFront(h.place)
	}
	file := h.current()
	if h.rules.File() != file { // compiled before, without the lock
		h.rules = file.Rules(c.options.Agent)
	}
	c.weigh(h) // compiled rules take memory, also those that the caller has asked for
	c.evict(h)
	return Answer{Known: true, Rules: h.rules}
}

// needed returns the answer that asks the caller to make the request.
func (h *host) needed() Answer {
	req := h.flight
	return Answer{Request: &req}
}

// Store takes the response to a Request. It returns the current rules, or the next Request if the
// response is a redirect. A response that was stored before is ignored, and so is one to a
// superseded flight, unless nothing better is known: a host may always take longer than
// Options.Patience. The answer then reflects what is known without it.
func (c *Cache) Store(req Request, resp Response, now time.Time) (Answer, error) {
	origin, err := rep.Origin(req.For)
	if err != nil {
		return Answer{}, err
	}
	file := resp.File()
	rules := file.Rules(c.options.Agent) // compiled without the lock
	resp.Header = shortFields(resp.Header)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[origin]
	switch {
	case h == nil:
		return Answer{}, nil
	case h.awaits(req, now, &c.options):
	case h.fresh(now, &c.options):
		return c.use(h), nil
	default:
		return Answer{}, nil
	}
	if h.flight.Flight == 0 { // it was abandoned
		c.unlist(h)
		h.flight.Flight = req.Flight
		h.place = c.given.PushBack(h)
	}
	if next, more := h.take(req, resp, file, now, &c.options); more {
		next.Flight = h.flight.Flight
		h.flight, h.began = next, now
		if h.place != nil {
			c.given.MoveToBack(h.place)
		}
		c.weigh(h)
		c.evict(nil)
		return h.needed(), nil
	}
	h.rules, h.answered, h.lead = rules, req.Flight, nil
	if req.Flight == h.flight.Flight {
		c.land(h, nil)
	} else {
		h.wake(nil) // the flight that is out may still bring something newer
	}
	return c.use(h), nil
}

// awaits reports whether the response to a request counts. A response to a superseded flight does
// if it is newer than all that were taken, nothing fresh is known, and it is as far along the
// redirects as the request that is out. Then it also advances the flight that is out. So does one to
// a flight that was abandoned, if none is out: another caller may have had the same request.
func (h *host) awaits(req Request, now time.Time, o *Options) bool {
	out := h.flight.Flight
	if req.Flight <= h.answered || req.Hop < h.flight.Hop { // it was stored before, or a later one was
		return false
	}
	return req.Flight == out || (out == 0 || req.Flight < out) && !h.fresh(now, o)
}

// Abandon reports that a Request will not be made, or that it failed for a reason that has nothing
// to do with the host, such as the end of the caller's context. The next Lookup returns a new
// Request. One that a Load makes stays in flight.
func (c *Cache) Abandon(req Request) { c.abandon(req, false, nil) }

// abandon also ends the calls of Load that wait for the request, if there is an error. The request
// of a Load is abandoned only by itself.
func (c *Cache) abandon(req Request, load bool, err error) {
	c.with(req.For, func(h *host) {
		switch {
		case req.Flight == 0 || h.flight.Flight != req.Flight || load != (h.place == nil):
		case load && req.Hop < h.flight.Hop: // a Pending has taken over
			h.place = c.given.PushBack(h)
			h.wake(nil) // those who wait have no limit yet, and this flight may get lost
		default:
			if load && req.Hop > 0 {
				at := h.began
				if h.lead != nil {
					at = h.lead.at
				}
				h.lead = &lead{req.URL, req.Hop, at}
			}
			c.land(h, err)
			c.evict(h)
		}
	})
}

// Stats describes the contents of a cache.
type Stats struct {
	Hosts    int // known or being requested
	InFlight int // of these, the ones with a request in flight
	Bytes    int // of memory, approximately
}

// Stats returns how full the cache is.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.idle.Len() + c.long.Len() + c.failing.Len()
	return Stats{len(c.hosts), len(c.hosts) - idle, c.bytes}
}

// host finds or creates a host.
func (c *Cache) host(origin string) *host {
	if h := c.hosts[origin]; h != nil {
		return h
	}
	origin = strings.Clone(origin) // do not keep a long URL in memory
	h := &host{origin: origin, answered: c.flights}
	h.URL = origin + rep.Path
	c.hosts[origin] = h
	c.park(h)
	c.weigh(h)
	return h
}

// launch starts a flight, replacing one that counts as lost. During a flight the host is in no
// list, so it cannot be evicted.
func (c *Cache) launch(origin string, now time.Time) *host {
	h := c.host(origin)
	c.unlist(h)
	c.flights++
	if h.lead != nil && now.Sub(h.lead.at).Abs() >= c.options.MaxRetry { // in either direction, as a clock may be set
		h.lead = nil
	}
	if h.flight, h.began = h.request(h.URL, 0), now; h.lead != nil {
		h.flight = h.request(h.lead.url, h.lead.hop)
	}
	h.flight.Flight = c.flights
	c.weigh(h)
	return h
}

func (c *Cache) unlist(h *host) {
	switch {
	case h.lane != nil:
		h.lane.Remove(h.place)
		h.lane.bytes -= h.cost
	case h.place != nil:
		c.given.Remove(h.place)
	}
	h.lane, h.place = nil, nil
}

// park marks a host without a request in flight as most recently used. One of which nothing is known,
// since its request was abandoned, is the first that has to go.
func (c *Cache) park(h *host) {
	c.unlist(h)
	switch h.lane = &c.idle; {
	case h.Failures > 0:
		h.lane = &c.failing
	case h.file.Size() > longCost:
		h.lane = &c.long
	}
	h.place = h.lane.PushFront(h)
	h.lane.bytes += h.cost
	if !h.known() {
		h.lane.MoveToBack(h.place)
	}
}

// land ends a flight and wakes every Load that is waiting for it.
func (c *Cache) land(h *host, err error) {
	h.flight = Request{}
	h.wake(err)
	c.park(h)
	c.weigh(h)
}

// wake wakes every Load that is waiting.
func (h *host) wake(err error) {
	if h.landed != nil {
		h.landed.err = err
		close(h.landed.done)
		h.landed = nil
	}
}

// evict drops the least recently used hosts without a request in flight, but not the one to keep if
// anything is known of it, until the cache is within its bound.
func (c *Cache) evict(keep *host) {
	for c.bytes > c.options.MaxBytes {
		h := oldest(&c.idle, keep)
		for _, l := range [...]*lane{&c.long, &c.failing} {
			if other := oldest(l, keep); other != nil && (h == nil || l.bytes > c.options.MaxBytes/2) {
				h = other
			}
		}
		if h == nil {
			return
		}
		c.drop(h)
	}
}

// oldest returns the least recently used host but the one to keep.
func oldest(l *lane, keep *host) *host {
	e := l.Back()
	if e != nil && e.Value.(*host) == keep && keep.known() {
		e = e.Prev()
	}
	if e == nil {
		return nil
	}
	return e.Value.(*host)
}

// evictLost does the same with flights that count as lost.
func (c *Cache) evictLost(now time.Time) {
	for c.bytes > c.options.MaxBytes && c.given.Len() > 0 {
		h := c.given.Front().Value.(*host)
		if !c.lost(h, now) {
			return
		}
		c.land(h, nil)
		c.drop(h)
	}
}

func (c *Cache) drop(h *host) {
	c.unlist(h)
	delete(c.hosts, h.origin)
	c.bytes -= h.cost
}

// weigh updates the byte count after a host has changed.
func (c *Cache) weigh(h *host) {
	before := h.cost
	h.cost = hostCost + 2*len(h.origin) + len(h.ETag) + len(h.LastModified) + len(h.Source) +
		len(h.Reason) + h.file.Size()
	switch {
	case h.flight.Flight != 0:
		h.cost += maxTarget // that of a redirect, which must not be refused for lack of room
	case h.lead != nil:
		h.cost += leadCost + len(h.lead.url)
	}
	c.bytes += h.cost - before
	if h.lane != nil {
		h.lane.bytes += h.cost - before
	}
}

// hostCost is the memory of a host without its strings and its file, leadCost that of a lead.
const hostCost, leadCost = 768, 48
