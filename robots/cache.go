package robots

import (
	"container/list"
	"iter"
	"math"
	"strings"
	"sync"
	"time"
)

// Options says how a [Cache] keeps files. The zero Options follows RFC 9309.
type Options struct {
	// Agent is whose Rules are given out, in the form of File.Rules. "" means those of a crawler
	// that no group names.
	Agent string

	// MaxBytes is about how much memory the cache may take; what was not used for longest makes
	// room. 0 means 64 MiB, which is some 18,000 hosts with a file of usual size, or 90,000
	// without; less than 0 means no bound.
	MaxBytes int

	// MinAge and MaxAge bound how long an answer is believed, whatever its header says. 0 means 5
	// minutes and 24 hours.
	MinAge, MaxAge time.Duration

	// Retry is how long to wait after a failure. It doubles with each further failure, up to
	// MaxRetry. 0 means 5 minutes and 1 hour. A host that asks for more by Retry-After gets up to
	// a day.
	Retry, MaxRetry time.Duration

	// GiveUp is after how much time without reach a file of which there is no copy counts as
	// missing, so that everything is allowed. The RFC permits that after 30 days. 0 means never.
	GiveUp time.Duration

	// Patience is after how much time a request that was given out and not answered is given out
	// again. 0 means 1 hour; less than 0 means never, for callers that lose no request.
	Patience time.Duration

	// DenyForbidden takes the status 401 and 403 for a wish not to be crawled. false means as the
	// RFC has it, that there is no file.
	DenyForbidden bool
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxBytes, 64<<20)
	setDefault(&o.MinAge, 5*time.Minute)
	setDefault(&o.MaxAge, 24*time.Hour)
	setDefault(&o.Retry, 5*time.Minute)
	setDefault(&o.MaxRetry, time.Hour)
	setDefault(&o.Patience, time.Hour)
	if o.Patience < 0 {
		o.Patience = math.MaxInt64
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// Cache keeps the robots.txt of many hosts, each as long as RFC 9309 (2.4) permits. Its methods are
// safe for concurrent use. It opens no socket and keeps no goroutine running.
//
// There are two ways to use it. [Cache.Get] waits, and calls a function to fetch what is missing.
// [Cache.Lookup] never waits: it says which request has to be made, and [Cache.Store] takes the
// answer, so that a crawler can schedule these requests like any other. Both keep to one request
// per host at a time, and may be mixed.
//
// A host is a scheme, a name and a port. Up to five redirects are followed, to any host; what they
// lead to holds for the host where they began, and for no other (2.3.1.2). A status of 4xx other
// than 429, a sixth redirect, or one that leads nowhere means that there is no file, and all is
// allowed. All else that is no file means that it is out of reach: then the last copy holds, for
// however long, and without a copy nothing is allowed; that a host once had no file is no copy.
type Cache struct {
	options Options

	mu    sync.Mutex
	hosts map[string]*host // by origin
	used  int              // the cost of all hosts
	idle  list.List        // of *host, those without flight, the last used in front
}

// host is an Entry and the request that is under way for it.
type host struct {
	Entry
	origin string
	cost   int
	rules  Rules         // of file, for the cache's agent
	of     *File         // what rules was made from
	place  *list.Element // in idle; nil while there is a flight
	flight Request
	began  time.Time
	landed chan struct{} // made by the first who waits, closed when the flight ends
}

// NewCache returns an empty cache.
func NewCache(o Options) *Cache {
	return &Cache{options: o.withDefaults(), hosts: make(map[string]*host)}
}

// A State tells what an [Answer] is.
type State int

// The states of an Answer. The zero State is the one that permits nothing.
const (
	InFlight State = iota // somebody else makes a Request for this host
	Needed                // the Request has to be made, and its Response stored
	Fresh                 // the Rules hold
)

// Answer is what a [Cache] says of a URL.
type Answer struct {
	State       State
	Rules       Rules     // if Fresh: for Options.Agent
	File        *File     // if Fresh: where they come from, to ask for other agents
	Until       time.Time // if Fresh: when they expire
	Unreachable bool      // if Fresh: the file is out of reach; they are of a copy, or forbid all
	Request     Request   // if Needed: what to ask for
}

// Lookup returns the rules that hold for a URL, or what has to be done to learn them. Who is told
// that a Request is needed must see to it that [Cache.Store] or [Cache.Abandon] follows: until then
// the host stays in memory, whatever Options.MaxBytes says. The error is that of [Locate].
func (c *Cache) Lookup(url string, now time.Time) (Answer, error) {
	answer, _, err := c.lookup(url, now)
	return answer, err
}

// lookup also returns what to wait for while a request is in flight.
func (c *Cache) lookup(url string, now time.Time) (Answer, *host, error) {
	origin, err := originOf(url)
	if err != nil {
		return Answer{}, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.host(origin)
	switch {
	case h.flying(now, c.options.Patience):
		return Answer{State: InFlight}, h, nil
	case h.place != nil && now.Before(h.Expires):
		c.idle.MoveToFront(h.place)
		return c.answer(h, now), h, nil
	}
	c.launch(h, h.start(), now)
	return Answer{State: Needed, Request: h.flight}, h, nil
}

// Store takes the answer to a Request. It returns rules that hold, or the Request to which a
// redirect leads. While another request for that host is awaited, this one's answer is ignored;
// while none is, it is welcome even if nobody was told to ask.
func (c *Cache) Store(req Request, resp Response, now time.Time) (Answer, error) {
	origin, err := originOf(req.For)
	if err != nil {
		return Answer{}, err
	}
	var file *File
	if found(resp.Status) {
		file = Parse(resp.Body)
		file.Rules(c.options.Agent) // compiled now, where it holds up nobody
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.host(origin)
	if h.place == nil && h.flight != req {
		return Answer{State: InFlight}, nil
	}
	if next, more := h.take(req, resp, file, now, &c.options); more {
		c.launch(h, next, now)
		return Answer{State: Needed, Request: next}, nil
	}
	c.land(h)
	return c.answer(h, now), nil
}

// Abandon says that a Request will not be made or not be answered, which is nobody's fault. The
// next who asks will be told that a request is needed.
func (c *Cache) Abandon(req Request) {
	origin, err := originOf(req.For)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[origin]; h != nil && h.place == nil && h.flight == req {
		c.land(h)
	}
}

// Entries yields what the cache knows when it is called, the hosts last used last: in that order
// [Cache.Restore] makes another cache like it. What is in flight is as it was before. The cache may
// be used meanwhile.
func (c *Cache) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, entry := range c.known() {
			if !yield(entry) {
				return
			}
		}
	}
}

// known copies the entries, so that no user's code runs under the lock.
func (c *Cache) known() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries := make([]Entry, 0, len(c.hosts))
	for at := c.idle.Back(); at != nil; at = at.Prev() {
		entries = append(entries, at.Value.(*host).Entry)
	}
	for _, h := range c.hosts {
		if h.place == nil && !h.Expires.IsZero() { // something was known before
			entries = append(entries, h.Entry)
		}
	}
	return entries
}

// Restore puts an Entry in, in the place of what is known of its host. Its Expires is taken as it
// is, however far off. Restore changes nothing while a request for that host is in flight. The error
// is that of [Locate].
func (c *Cache) Restore(e Entry) error {
	origin, err := originOf(e.URL)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.host(origin); h.place != nil {
		e.URL = h.URL
		h.Entry = e
		c.land(h)
	}
	return nil
}

// Stats counts what a cache holds.
type Stats struct {
	Hosts    int // of which something is known or asked
	InFlight int // of these, for how many a Request is out
	Bytes    int // how much memory they take, about
}

// Stats returns how full the cache is.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{len(c.hosts), len(c.hosts) - c.idle.Len(), c.used}
}

// host finds or makes a host. It requires that c.mu is held, as do all methods below.
func (c *Cache) host(origin string) *host {
	if h := c.hosts[origin]; h != nil {
		return h
	}
	origin = strings.Clone(origin) // not all of some long URL
	h := &host{Entry: Entry{URL: origin + ownPath}, origin: origin}
	c.hosts[origin] = h
	h.place = c.idle.PushFront(h)
	c.weigh(h)
	return h
}

// flying reports whether a request is out that is still worth waiting for.
func (h *host) flying(now time.Time, patience time.Duration) bool {
	return h.place == nil && now.Sub(h.began) < patience
}

// launch notes that a request is out. A host in flight is not evicted: those who wait for it would
// ask a second time.
func (c *Cache) launch(h *host, req Request, now time.Time) {
	h.flight, h.began = req, now
	if h.place != nil {
		c.idle.Remove(h.place)
		h.place = nil
	}
}

// land ends a flight and wakes those who wait for it.
func (c *Cache) land(h *host) {
	h.flight = Request{}
	if h.landed != nil {
		close(h.landed)
		h.landed = nil
	}
	if h.place == nil {
		h.place = c.idle.PushFront(h)
	} else {
		c.idle.MoveToFront(h.place)
	}
	c.weigh(h)
	for c.options.MaxBytes > 0 && c.used > c.options.MaxBytes && c.idle.Len() > 1 {
		c.drop(c.idle.Back().Value.(*host))
	}
}

func (c *Cache) drop(h *host) {
	c.idle.Remove(h.place)
	delete(c.hosts, h.origin)
	c.used -= h.cost
}

// weigh brings the account up to date with a host.
func (c *Cache) weigh(h *host) {
	c.used -= h.cost
	h.cost = hostCost + 2*len(h.origin) + len(h.ETag) + len(h.LastModified) + len(h.Source)
	if h.File != nil {
		h.cost += h.File.cost()
	}
	c.used += h.cost
}

// hostCost is what a host takes beside its strings and its file.
const hostCost = 640

// answer returns what holds.
func (c *Cache) answer(h *host, now time.Time) Answer {
	file := h.file(now, &c.options)
	if h.of != file {
		h.rules, h.of = file.Rules(c.options.Agent), file
	}
	return Answer{
		State: Fresh, Rules: h.rules, File: file, Until: h.Expires, Unreachable: h.Failures > 0,
	}
}

// originOf returns the place of a URL's robots.txt without the path. Most URLs say it in their
// first part, and need neither a parser nor an allocation.
func originOf(url string) (string, error) {
	for _, scheme := range [...]string{"https://", "http://"} {
		rest, ok := strings.CutPrefix(url, scheme)
		if !ok {
			continue
		}
		name := leading(rest, isPlainHostByte)
		ends := len(name) == len(rest) || strings.IndexByte("/?#", rest[len(name)]) >= 0
		if name != "" && ends {
			return url[:len(scheme)+len(name)], nil
		}
	}
	where, err := Locate(url)
	return strings.TrimSuffix(where, ownPath), err
}

// isPlainHostByte has what Locate leaves as it is.
func isPlainHostByte(c byte) bool { return isLower(c) || isDigit(c) || c == '.' || c == '-' }
