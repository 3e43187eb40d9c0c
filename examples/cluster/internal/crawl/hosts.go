package crawl

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Bounds of the hosts' state.
const (
	rulesTTL = 24 * time.Hour  // RFC 9309 §2.4
	minTTL   = 5 * time.Minute // of rules with a shorter max-age
	errorTTL = time.Hour       // of failures to get rules, and of names that do not exist
)

// hosts is the state of a partition of hosts: the address of each host, the rules of each of its
// servers, and the items that wait for either. It uses the time of the messages.
type hosts struct {
	crawl  *Options
	part   int
	wanted func(it message.Item) bool // a sitemap that a robots.txt names; nil means each

	hosts   map[string]*host
	rules   robots.Pending[message.Item] // items that wait for the rules of their server
	servers map[string]struct{}          // servers known to rules, by the URL of the robots.txt
	wants   []string                     // hosts to look up
	loaded  bool                         // since the last call of Wants
	waiting int                          // for an address
	counts  map[string]int64

	dirtyHosts, dirtyServers map[string]struct{} // since the last checkpoint
}

// A host is the state of one host.
type host struct {
	addr    netip.Addr // invalid if the host is not known to exist
	home    int        // its partition of fetch, from 1: that of the first address; 0 before
	until   time.Time  // when to look it up again
	pages   int        // admitted so far
	silent  bool       // no name server answered
	asking  bool       // a lookup is in progress
	waiting []message.Item
}

func newHosts(o *Options, part int) *hosts {
	// This is durable state of the crawl: nothing may be evicted, and no request is lost.
	ro := o.robots()
	ro.MaxBytes, ro.Patience = -1, -1
	rules := robots.NewCache(ro)
	return &hosts{
		crawl: o, part: part, rules: robots.Pending[message.Item]{Cache: rules, Max: -1},
		hosts: map[string]*host{}, servers: map[string]struct{}{}, counts: map[string]int64{},
		dirtyHosts: map[string]struct{}{}, dirtyServers: map[string]struct{}{},
	}
}

// Apply processes a page to check, rules to fetch for another partition, or an answer.
func (s *hosts) Apply(it message.Item, at time.Time, emit engine.Emit) {
	if nameless(it) {
		return // no module sends such an item, and the state has no place for it
	}
	switch it.Kind {
	case message.Page, message.Sitemap:
		// The limit is checked first: a host with endless URLs must not even fill the memory of the
		// items that wait for its rules.
		h := s.host(weburl.Host(it.URL))
		if !it.Again {
			if h.pages >= s.crawl.HostPages {
				s.count(stage.HostFull)
				return
			}
			h.pages++
		}
		s.check(it, at, emit)
	case message.Rules:
		s.send(it, at, emit)
	case message.Answer:
		s.answered(it, at, emit)
	case message.Located:
		s.located(it, at, emit)
	}
}

// nameless reports whether an item lacks the name of its host or server.
func nameless(it message.Item) bool {
	switch it.Kind {
	case message.Located:
		return it.URL == ""
	case message.Page, message.Sitemap:
		return weburl.Host(it.URL) == ""
	default:
		return weburl.Host(it.URL) == "" || it.For == ""
	}
}

func (s *hosts) count(fate stage.Fate) { s.counts[string(fate)]++ }

// end counts the fate of a page that is not fetched now, and reports it to dedupe, which plans the
// next try, not before a time.
func (s *hosts) end(
	it message.Item, fate stage.Fate, at, notBefore time.Time, emit engine.Emit,
) {
	s.count(fate)
	state := stateOf(it)
	due := s.crawl.next(fate, &state, at, notBefore)
	if due.IsZero() && mayPass[fate] {
		s.count(gaveUp)
	}
	if r, ok := report(it, state, due); ok {
		emit(message.Dedupe, s.crawl.urlPart(it.URL), r)
	}
}

// full reports whether no more items may wait, and then ends the item. To stop reading is not
// possible: the awaited answers are in the same stream, behind the items.
func (s *hosts) full(it message.Item, at time.Time, emit engine.Emit) bool {
	if s.Open() < s.crawl.Waiting {
		return false
	}
	if it.Again { // it was admitted before, and may have come back from fetch: that is no failure of the page
		r, _ := report(it, stateOf(it), at.Add(ownFault).UTC().Truncate(time.Second).Add(time.Second)) // true, as it is due
		emit(message.Dedupe, s.crawl.urlPart(it.URL), r)
		s.count(postponed)
		return true
	}
	s.end(it, stage.QueueFull, at, time.Time{}, emit)
	return true
}

// host returns the state of a host, and marks it as changed.
func (s *hosts) host(name string) *host {
	h := s.hosts[name]
	if h == nil {
		name = strings.Clone(name)
		h = &host{}
		s.hosts[name] = h
	}
	s.dirtyHosts[name] = struct{}{}
	return h
}

// changed marks a server as changed.
func (s *hosts) changed(file string) {
	if _, known := s.servers[file]; !known {
		file = strings.Clone(file)
		s.servers[file] = struct{}{}
	}
	s.dirtyServers[file] = struct{}{}
}

// check sends a page on if the rules of its server allow it. While they are unknown, it waits.
func (s *hosts) check(it message.Item, at time.Time, emit engine.Emit) {
	rules, known := s.rules.Cache.Get(it.URL, at)
	if !known {
		s.await(it, at, emit)
		return
	}
	switch verdict := rules.Match(it.URL); {
	case verdict.Allowed:
		it.Delay, _ = rules.Delay()
		until := s.expiry(it.URL)
		if !it.Until.IsZero() { // it has come back: one that waits longer than its robots.txt lives must be fetched, too
			entry, _ := s.rules.Cache.Entry(it.URL)
			until = latest(until, entry.Fetched.Add(max(s.crawl.RulesTTL, minTTL)).UTC().Truncate(time.Second))
		}
		it.Until = until
		s.send(it, at, emit)
	case verdict.Line > 0:
		s.end(it, stage.Disallowed, at, time.Time{}, emit)
	default: // no line forbids it: the file is unreachable (RFC 9309 §2.3.1.4)
		h := s.hosts[weburl.Host(it.URL)]
		if h != nil && at.Before(h.until) && !h.addr.IsValid() {
			s.unknown(it, h, at, emit) // since there is no such host
			return
		}
		s.end(it, stage.RobotsUnreachable, at, s.expiry(it.URL), emit)
	}
}

// expiry returns when the known rules for a URL expire.
func (s *hosts) expiry(url string) time.Time {
	entry, _ := s.rules.Cache.Entry(url)
	return entry.Expires.UTC().Truncate(time.Second) // as it travels
}

// await parks a page until the rules of its server are known, and requests them if necessary.
func (s *hosts) await(it message.Item, at time.Time, emit engine.Emit) {
	file, err := robotstxt.Locate(it.URL)
	if err != nil {
		s.end(it, stage.Disallowed, at, time.Time{}, emit)
		return
	}
	if s.full(it, at, emit) {
		return
	}
	// The URL was located, nothing is bounded here, and check has found the rules unknown.
	answer, _, _ := s.rules.Lookup(it.URL, it, at)
	s.changed(file)
	if answer.Request != nil {
		s.send(message.Item{Kind: message.Rules, URL: file, For: file}, at, emit)
	}
}

// send sends an item to the partition of its host's address. While that is unknown, the item waits.
func (s *hosts) send(it message.Item, at time.Time, emit engine.Emit) {
	name := weburl.Host(it.URL)
	if addr, ok := stage.Literal(name); ok {
		s.fetch(it, addr, message.AddrPart(addr, s.crawl.Parts), emit)
		return
	}
	h := s.hosts[name]
	switch {
	case h == nil || !at.Before(h.until):
		if it.Kind != message.Rules && s.full(it, at, emit) {
			return
		}
		h = s.host(name)
		h.waiting = append(h.waiting, it)
		s.waiting++
		if !h.asking {
			h.asking = true
			s.wants = append(s.wants, name)
		}
	case !h.addr.IsValid():
		s.unknown(it, h, at, emit)
	default:
		s.fetch(it, h.addr, h.home-1, emit)
	}
}

// fetch sends an item to a partition of fetch. A host keeps the partition of its first address:
// if it moved, two partitions would visit it until the first one has no more URLs of it.
func (s *hosts) fetch(it message.Item, addr netip.Addr, part int, emit engine.Emit) {
	it.Addr = addr
	emit(message.Fetch, part, it)
}

// unknown ends an item whose host does not exist, or whose name servers have no answer.
func (s *hosts) unknown(it message.Item, h *host, at time.Time, emit engine.Emit) {
	switch {
	case it.Kind == message.Rules:
	case h.silent:
		s.end(it, stage.Unresolved, at, h.until, emit)
		return
	default:
		s.end(it, stage.UnknownHost, at, time.Time{}, emit)
		return
	}
	answer := message.Item{Kind: message.Answer, URL: it.URL, For: it.For}
	if to := s.crawl.partOfHost(it.For); to != s.part {
		emit(message.Hosts, to, answer)
		return
	}
	s.answered(answer, at, emit)
}

// located processes the result of a lookup.
func (s *hosts) located(it message.Item, at time.Time, emit engine.Emit) {
	h := s.host(it.URL)
	if !h.asking {
		return // asked twice, by two owners
	}
	// With a lifetime of zero, the items that this answer releases would request it again, and so
	// on forever.
	h.silent = it.Status != 0
	h.asking, h.addr, h.until = false, it.Addr, at.Add(max(it.Delay, min(time.Minute, s.crawl.RulesTTL)))
	if h.home == 0 && h.addr.IsValid() {
		h.home = message.AddrPart(h.addr, s.crawl.Parts) + 1
	}
	waiting := h.waiting
	h.waiting = nil
	s.waiting -= len(waiting)
	for _, it := range waiting {
		s.send(it, at, emit)
	}
}

// answered processes a response for a robots.txt and checks the pages that waited for it. A redirect
// goes to the partition of the target's host.
func (s *hosts) answered(it message.Item, at time.Time, emit engine.Emit) {
	req, asked := s.rules.Cache.InFlight(it.For)
	if !asked {
		return // fetched twice, by two owners
	}
	if it.Status == statusDenied {
		waiting := s.rules.Abandon(req)
		s.changed(it.For)
		for _, it := range waiting {
			s.end(it, refused, at, time.Time{}, emit)
		}
		return
	}
	req.URL, req.Hop = it.URL, int(it.Hops)
	resp := robots.Response{Status: int(it.Status), Body: it.Body, Whole: true, Header: http.Header{}}
	if it.Location != "" {
		resp.Header.Set("Location", it.Location)
	}
	answer, waiting, _ := s.rules.Store(req, resp, at)
	s.changed(it.For)
	if answer.Request != nil {
		next := message.Item{
			Kind: message.Rules, URL: answer.Request.URL, For: it.For, Hops: uint32(answer.Request.Hop),
		}
		if to := s.crawl.partOfHost(next.URL); to != s.part {
			emit(message.Hosts, to, next)
			return
		}
		s.send(next, at, emit)
		return
	}
	s.sitemaps(it.For, answer.Rules, emit)
	for _, it := range waiting {
		s.check(it, at, emit)
	}
}

// statusDenied is the status of the answer for a robots.txt on the operator's deny list.
const statusDenied = 1

// sitemaps sends on the sitemaps that a robots.txt names and that are wanted: the hosts of others would be
// looked up, and asked for a robots.txt.
func (s *hosts) sitemaps(file string, rules robotstxt.Rules, emit engine.Emit) {
	if s.crawl.NoSitemaps || rules.File() == nil {
		return
	}
	n := 0
	for named := range rules.File().SitemapURLs(file) {
		if n++; n > stage.MaxNamed {
			return
		}
		url, err := weburl.Canonical(named)
		it := message.Item{Kind: message.Sitemap, URL: strings.Clone(url), For: stage.Authority(file)}
		if err == nil && (s.wanted == nil || s.wanted(it)) {
			emit(message.Dedupe, s.crawl.urlPart(url), it)
		}
	}
}

// Wants returns the hosts to look up. After Load these include the lookups of the previous owner,
// which may not have got the answers.
func (s *hosts) Wants() []string {
	if s.loaded {
		s.loaded, s.wants = false, nil
		for name, h := range s.hosts {
			if h.asking {
				s.wants = append(s.wants, name)
			}
		}
	}
	wants := s.wants
	s.wants = nil
	return wants
}

// Open returns how many items wait.
func (s *hosts) Open() int { return s.waiting + s.rules.Len() }

// Counts returns the fates of the URLs that ended here.
func (s *hosts) Counts() map[string]int64 { return s.counts }
