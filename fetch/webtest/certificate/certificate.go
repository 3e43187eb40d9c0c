// Package certificate judges whether a crawler is polite, by the log of a virtual web.
//
//	trial, err := certificate.Start(certificate.Options{Delay: time.Second})
//	defer trial.Web.Close()
//	crawl(trial.Web.Client(), trial.Seed()) // your crawler
//	for _, v := range trial.Verdicts() {
//		fmt.Println(v)
//	}
//
// It looks only at what arrived, so it works for any crawler, and each verdict comes with the log
// lines that prove it. The command webtest does the same for a program in any language.
package certificate

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// DefaultHosts, DefaultAddrs and DefaultPages are the size of a web whose options do not say it:
// with a delay of a second, a polite crawl takes about a minute and a half.
const (
	DefaultHosts = 12
	DefaultAddrs = 4
	DefaultPages = 8
)

// pauses is how many times the delay a host with a Crawl-delay or a Retry-After asks for.
const pauses = 2

// Options describes a [Trial].
type Options struct {
	Web   webtest.Options // for the sizes, 0 means the defaults of this package; NoLog is an error
	Delay time.Duration   // between two requests to a host or an address; 0 means a second

	// Proxied says that the crawler knows no way but the proxy of the web, which sees requests for
	// private addresses. false means that pages have no links to such addresses: the crawler would
	// really try to connect.
	Proxied bool

	// Complete says that a crawler fails if it misses pages. false means that this is only reported:
	// it may be a limit that the crawler was given, and it is not impolite.
	Complete bool
}

// A Trial is a web in which a crawler is judged. Its methods are safe for concurrent use.
type Trial struct {
	Web *webtest.Web

	Options
	generated int // hosts; those after them serve what they like
}

// Start starts a web with every kind of host to which crawlers are impolite: with a Crawl-delay,
// with Retry-After, with redirects to another host, and several hosts with one address. These come
// in addition to the traits that the options give a host.
func Start(o Options) (*Trial, error) {
	switch o.Delay = cmp.Or(o.Delay, time.Second); {
	case o.Delay < 0:
		return nil, fmt.Errorf("certificate: the delay is %v; want a positive one", o.Delay)
	case o.Web.NoLog:
		return nil, errors.New("certificate: a web with Options.NoLog keeps nothing to judge by")
	}
	if o.Web.Hosts == 0 && o.Web.Static == "" && len(o.Web.Handlers) == 0 {
		o.Web.Hosts = DefaultHosts
		o.Web.Addrs = cmp.Or(o.Web.Addrs, DefaultAddrs)
	}
	o.Web.Pages = cmp.Or(o.Web.Pages, DefaultPages)
	t := &Trial{Options: o, generated: o.Web.Hosts}
	o.Web.Traits = t.strict
	var err error
	t.Web, err = webtest.Start(o.Web)
	return t, err
}

// strict returns the traits of a host: those of the options, with something that a crawler must
// respect. The first host is plain.
func (t *Trial) strict(host int) (traits webtest.Traits) {
	if t.Options.Web.Traits != nil {
		traits = t.Options.Web.Traits(host)
	}
	longer := (pauses*t.Delay + time.Second - 1).Truncate(time.Second) // most parsers want whole seconds
	switch host % 4 {
	case 0:
		if t.Proxied && host == 0 {
			traits.Traps |= webtest.TrapAddress
		}
	case 1:
		traits.Robots.CrawlDelay = max(longer, traits.Robots.CrawlDelay)
	case 2:
		traits.Throttle = cmp.Or(traits.Throttle, webtest.Throttle{Every: 5, RetryAfter: longer})
	case 3:
		traits.Traps |= webtest.TrapAway
	}
	return traits
}

// Seed returns the URL from which every page of the web can be reached.
func (t *Trial) Seed() string {
	for h := range t.Web.Hosts() {
		return h.URL()
	}
	return ""
}

// A Verdict is the result of one check.
type Verdict struct {
	Check  string  `json:"check"` // what was checked, such as "host delay"
	Result Result  `json:"result"`
	Count  int     `json:"count"` // of the breaches
	Text   string  `json:"text"`  // what happened, in a few words
	Proof  []Proof `json:"proof"` // one for each breach, in the order of the log
}

// String returns the verdict on one line.
func (v Verdict) String() string { return fmt.Sprintf("%s: %s (%s)", v.Check, v.Result, v.Text) }

// Result is what a check found.
type Result string

// The results.
const (
	Passed   Result = "passed"
	Failed   Result = "FAILED"
	Untested Result = "untested" // the crawler came into no situation in which it could have failed
	Partial  Result = "partial"  // it missed pages, and Options.Complete is not set
)

// A Proof is one breach: what the web's log says about it.
type Proof struct {
	Text     string            `json:"text"` // why this is a breach
	Requests []webtest.Request `json:"requests"`
}

// Verdicts judges the requests so far.
func (t *Trial) Verdicts() []Verdict {
	l := &ledger{Trial: t, log: t.Web.Log(), known: make(map[string]time.Time), pace: math.MaxInt64}
	for before, r := range pairs(l.log, byHost) {
		idle := r.Time.Sub(before.Answered)
		if idle < 0 { // it did not wait for the answer
			idle = r.Time.Sub(before.Time)
		}
		if !isRobots(before) && !isRobots(r) && r.Status != http.StatusMisdirectedRequest {
			l.pace = min(l.pace, idle)
		}
	}
	for _, r := range l.log {
		first, ok := l.known[r.Host]
		if r.Path == "/robots.txt" && r.Method == http.MethodGet && r.Status != 0 && (!ok || r.Answered.Before(first)) {
			l.known[r.Host] = r.Answered
		}
	}
	return []Verdict{
		l.hostDelay(), l.addrDelay(), l.robots(), l.crawlDelay(), l.retryAfter(), l.redirects(),
		l.private(), l.twice(), l.complete(),
	}
}

// ledger is a log with what is already known about it.
type ledger struct {
	*Trial
	log   []webtest.Request
	known map[string]time.Time // when the first answer to /robots.txt of a host began
	pace  time.Duration        // shortest wait between two pages of a host: who always waits longer than a pause keeps it by chance
}

// check is what one check has found.
type check struct {
	name, unit string
	occasions  int // on which the crawler could have failed
	breaches   []Proof
}

// breach adds a breach and what proves it.
func (c *check) breach(text string, proof ...webtest.Request) {
	c.breaches = append(c.breaches, Proof{text, append([]webtest.Request{}, proof...)}) // an array in JSON, even if empty
}

// delay judges whether a delay after the request before was kept, and reports whether it was broken. It is
// no occasion if the crawler hardly waited once it had the answer, since then the answer was slow, or if none came.
func (c *check) delay(before, r webtest.Request, want time.Duration) bool {
	v := webtest.Violation{Earlier: before, Later: r, Gap: r.Time.Sub(before.Time), Want: want, ByAddr: before.Host != r.Host}
	early := v.Gap < least(want)
	if early {
		c.breach(v.String(), before, r)
	}
	idle := r.Time.Sub(before.Answered)
	if early || idle < 0 || idle >= want/chance && before.Status != 0 {
		c.occasions++
	}
	return early
}

// verdict returns the verdict of what was found. Each breach was an occasion.
func (c *check) verdict() Verdict {
	occasions := max(c.occasions, len(c.breaches))
	v := Verdict{Check: c.name, Result: Passed, Count: len(c.breaches), Proof: append([]Proof{}, c.breaches...)}
	switch {
	case occasions == 0:
		v.Result = Untested
	case len(c.breaches) > 0:
		v.Result = Failed
	}
	v.Text = fmt.Sprintf("%d of %d %s", len(c.breaches), occasions, c.unit)
	return v
}

// least returns how soon a request may arrive whose delay is given: 5 % earlier, and some
// milliseconds if that is more. What one process sends in time, another one may see a moment too early.
func least(delay time.Duration) time.Duration {
	return delay - max(delay/20, min(5*time.Millisecond, delay/2))
}

// instant is how long an answer, or a request that was sent before it came, may be on its way. It excuses only
// requests that keep the delay: those of others come at once after every answer.
const instant = 2 * time.Millisecond

// chance is how many times a longer pause a crawler may take until it proves nothing: it has other hosts
// to ask meanwhile, and would have come as late without respect for the pause.
const chance = 2

// pairs iterates over the requests with the one before each that has the same key.
func pairs[K comparable](log []webtest.Request, key func(webtest.Request) K) iter.Seq2[webtest.Request, webtest.Request] {
	return func(yield func(before, r webtest.Request) bool) {
		last := make(map[K]webtest.Request)
		for _, r := range log {
			before, ok := last[key(r)]
			last[key(r)] = r
			if ok && !yield(before, r) {
				return
			}
		}
	}
}

func byHost(r webtest.Request) string     { return r.Host }
func byAddr(r webtest.Request) netip.Addr { return r.Addr }

// hostDelay leaves out names and addresses that the web does not have: what a crawler asks there, such as where
// it reports to, is no crawling.
func (l *ledger) hostDelay() Verdict {
	c := check{name: "host delay", unit: "requests early for their host"}
	robots := 0
	for before, r := range pairs(l.log, byHost) {
		if r.Status != http.StatusMisdirectedRequest && c.delay(before, r, l.Delay) && (isRobots(before) || isRobots(r)) {
			robots++
		}
	}
	v := c.verdict()
	if robots > 0 {
		v.Text += fmt.Sprintf(", %d of them before or after robots.txt", robots)
	}
	return v
}

// addrDelay judges the requests to another host of the same address: two to one host have been
// judged already.
func (l *ledger) addrDelay() Verdict {
	c := check{name: "address delay", unit: "requests early for an address that hosts share"}
	for before, r := range pairs(l.log, byAddr) {
		if r.Addr.IsValid() && before.Host != r.Host {
			c.delay(before, r, l.Delay)
		}
	}
	return c.verdict()
}

// robots judges what was requested although robots.txt disallows it, or before the answer about it. The
// seed is exempt: it is a user's request. Hosts that are not generated have rules of their own, so
// they can only fail.
func (l *ledger) robots() Verdict {
	c := check{name: "robots.txt", unit: "requests disallowed, or before robots.txt"}
	blamed := make(map[string]bool)
	asked, left := make(map[string]bool), make(map[string]bool) // hosts, and those with pages to be left out
	for _, r := range l.log {
		h, ok := l.Web.Host(r.Host)
		asked[h.Name] = ok
		if !ok || isRobots(r) {
			continue
		}
		for _, to := range l.leads(r) {
			if u, err := url.Parse(to); err == nil && !l.Web.Allows(to) {
				left[u.Host] = true
			}
		}
		early := !l.knows(r)
		switch {
		case early && r.URL() == l.Seed():
			continue
		case early && !blamed[r.Host]:
			blamed[r.Host] = true
			c.breach("the first request to "+r.Host+" is not for robots.txt, or did not wait for the answer", r)
		}
		if !l.Web.Allows(r.URL()) && r.URL() != l.Seed() {
			c.breach("robots.txt disallows "+r.URL(), r)
		}
		if h.Index < l.generated {
			c.occasions++
		}
	}
	maps.DeleteFunc(left, func(host string, _ bool) bool { return !asked[host] })
	if len(left) == 0 {
		c.occasions = 0 // it met nothing that it had to leave out, where it went at all
	}
	return c.verdict()
}

// knows reports whether the client could know robots.txt when it sent a request.
func (l *ledger) knows(r webtest.Request) bool {
	since, ok := l.known[r.Host]
	return ok && !r.Time.Before(since)
}

// leads returns the URLs to which an answer leads: its links, or the target of a redirect.
func (l *ledger) leads(r webtest.Request) []string {
	switch {
	case r.Location != "":
		if to, ok := l.target(r); ok {
			return []string{to}
		}
	case has(r):
		return l.Web.Links(r.URL())
	}
	return nil
}

// read reports whether the client got what it asked for, and not only its header.
func read(r webtest.Request) bool {
	return r.Method == http.MethodGet && r.Status == http.StatusOK
}

// has reports whether the client has what it asked for: it got that, or has kept it since an earlier crawl.
func has(r webtest.Request) bool {
	return read(r) || r.Method == http.MethodGet && r.Status == http.StatusNotModified
}

// isRobots reports whether a request is for robots.txt, or for where one redirects to.
func isRobots(r webtest.Request) bool {
	return r.Path == "/robots.txt" || r.Path == "/robots-rules.txt"
}

// crawlDelay judges hosts whose robots.txt asks for a longer delay, from the first page on that was
// requested when that was known.
func (l *ledger) crawlDelay() Verdict {
	c := check{name: "Crawl-delay", unit: "requests early for the Crawl-delay of their host"}
	var log []webtest.Request
	begun := make(map[string]bool)
	for _, r := range l.log {
		if begun[r.Host] = begun[r.Host] || l.knows(r) && !isRobots(r); begun[r.Host] {
			log = append(log, r)
		}
	}
	for before, r := range pairs(log, byHost) {
		gap, want := r.Time.Sub(before.Time), l.Web.CrawlDelay(r.Host)
		if gap < least(want) || gap < chance*want && l.pace < least(want) {
			c.delay(before, r, want)
		}
	}
	return c.verdict()
}

// retryAfter judges the requests to a host that has just asked for a pause. The pause begins with the
// answer: what was sent before, or within the same instant, could not know of it. A pause that is kept
// proves something if it is not much longer than asked for, or if the crawler had come sooner before; but not
// if a request came with the answer, since one that knew of it came just as soon.
func (l *ledger) retryAfter() Verdict {
	c := check{name: "Retry-After", unit: "pauses not kept"}
	ends := func(r webtest.Request) time.Time { return r.Answered.Add(least(r.RetryAfter)) }
	type pause struct {
		webtest.Request
		pace    time.Duration // how long after the request before it that came
		excused bool          // a request came with the answer
	}
	asked := make(map[string][]pause) // by host; a slow answer asks later than those to what came after it
	last := make(map[string]webtest.Request)
	for _, r := range l.log {
		early := r.Time.Sub(last[r.Host].Time) < least(l.Delay)
		var before pause          // of those known by then, the one that ends last
		rest := asked[r.Host][:0] // that of a known one is not worth a second proof
		for _, p := range asked[r.Host] {
			switch since := r.Time.Sub(p.Answered); {
			case since < 0:
				rest = append(rest, p)
			case since == 0, since <= instant && !early:
				p.excused = true
				rest = append(rest, p)
			case ends(p.Request).After(ends(before.Request)):
				before = p
			}
		}
		asked[r.Host] = rest
		if before.RetryAfter > 0 {
			after := r.Time.Sub(before.Answered)
			if !before.excused && l.pace < least(before.RetryAfter) && (after/chance < before.RetryAfter || before.pace < before.RetryAfter) {
				c.occasions++
			}
			if r.Time.Before(ends(before.Request)) {
				c.breach(fmt.Sprintf("%s came %s after an answer with Retry-After: %.0f",
					r.URL(), after, before.RetryAfter.Seconds()), before.Request, r)
			}
		}
		if r.RetryAfter > 0 {
			asked[r.Host] = append(asked[r.Host], pause{r, r.Time.Sub(last[r.Host].Time), false})
		}
		last[r.Host] = r
	}
	return c.verdict()
}

// redirects judges what came of redirects to another host: that host has its own robots.txt and its
// own delay. That of its address is another matter, which the crawler may not see.
func (l *ledger) redirects() Verdict {
	c := check{name: "redirects to other hosts", unit: "redirects followed early or to disallowed pages"}
	from := make(map[string]webtest.Request) // the last redirect to a URL
	last := make(map[string]webtest.Request)
	for _, r := range l.log {
		earlier := last[r.Host]
		last[r.Host] = r
		if before, ok := from[r.URL()]; ok {
			delete(from, r.URL())
			switch gap := r.Time.Sub(earlier.Time); {
			case !l.Web.Allows(r.URL()):
				c.breach("a redirect was followed to what robots.txt disallows there", before, r)
			case gap < least(l.Delay) && r.Time.Sub(before.Answered) < least(l.Delay):
				c.breach(fmt.Sprintf("a redirect was followed %s after the request before it to that host", gap), before, r)
			}
		}
		if to, ok := l.target(r); ok && !isRobots(r) {
			c.occasions++
			from[to] = r
		}
	}
	return c.verdict()
}

// target returns the URL on another host of the web to which a request was redirected.
func (l *ledger) target(r webtest.Request) (to string, ok bool) {
	from, err := url.Parse(r.URL())
	if err != nil || r.Location == "" {
		return "", false
	}
	u, err := from.Parse(r.Location)
	if err != nil {
		return "", false
	}
	h, ok := l.Web.Host(u.Hostname())
	asked := webtest.Request{Host: h.Name, Path: u.RequestURI(), TLS: u.Scheme == "https"} // as the log will have it
	return asked.URL(), ok && h.Name != r.Host
}
