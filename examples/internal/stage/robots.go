package stage

import (
	"fmt"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
)

// A Step is what to do with an item next.
type Step int

// The steps.
const (
	Go   Step = iota // fetch it
	Stop             // it ends here
	Wait             // its server's rules are on their way; Settle gives it back
	Ask              // as Wait, and the caller has to make a request for the rules
)

// A Ruling is what robots.txt says of an item.
type Ruling struct {
	Step    Step
	Fate    Fate           // of an item that ends
	Why     string         // it ends: the deciding line, or what went wrong
	Until   time.Time      // when the rules of an unreachable server are asked for again; else zero
	Request robots.Request // to be made, if Step is Ask

	// News is what rules of an earlier crawl lead to, the first time that they are asked in this
	// one; else nil.
	News *Settled
}

// Robots knows the rules of the servers of a crawl, and keeps the items whose server's rules are
// not there yet. Its methods are safe for concurrent use.
type Robots struct {
	rules *robots.Cache
	agent string

	// mu is held from a look-up to the parking that follows from it, and Settle takes what is
	// parked after it has stored the answer: so no item is parked for an answer that has come.
	mu     sync.Mutex
	parked map[string][]Item   // by the URL of the robots.txt
	silent map[string]failure  // servers that gave no answer at all
	unused map[string]struct{} // servers whose rules are from a file and were not asked yet
}

// A failure is why a server gave no answer.
type failure struct {
	fate Fate
	why  string
}

// maxSilent bounds how many failures are remembered in detail; of others it is only known that
// there was one.
const maxSilent = 100_000

// NewRobots returns an empty table for a crawler of that name.
func NewRobots(agent string) *Robots {
	return &Robots{
		// A request waits in the queue like any other. However long that takes, it is not lost.
		rules:  robots.NewCache(robots.Options{Agent: agent, Patience: -1}),
		agent:  agent,
		parked: map[string][]Item{},
		silent: map[string]failure{},
		unused: map[string]struct{}{},
	}
}

// Rule tells whether the item may be fetched now.
func (r *Robots) Rule(it Item, now time.Time) Ruling {
	file, err := robots.Locate(it.URL)
	if err != nil {
		return Ruling{Step: Stop, Fate: Disallowed, Why: err.Error()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	answer, err := r.rules.Lookup(it.URL, now)
	switch {
	case err != nil:
		return Ruling{Step: Stop, Fate: Disallowed, Why: err.Error()}
	case answer.State == robots.Fresh:
		ruling := r.judge(file, it.URL, answer)
		if _, unused := r.unused[file]; unused {
			delete(r.unused, file)
			news := settled(file, answer)
			ruling.News = &news
		}
		return ruling
	}
	r.parked[file] = append(r.parked[file], it)
	if answer.State == robots.InFlight {
		return Ruling{Step: Wait}
	}
	return Ruling{Step: Ask, Request: answer.Request}
}

// Explain says in words what is known of the rules for a URL, without asking for them.
func (r *Robots) Explain(url string, now time.Time) string {
	file, err := robots.Locate(url)
	if err != nil {
		return err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	answer, err := r.rules.Lookup(url, now)
	switch {
	case err != nil:
		return err.Error()
	case answer.State == robots.Needed:
		r.rules.Abandon(answer.Request)
		return "not asked for yet: " + file
	case answer.State == robots.InFlight:
		return "being asked for: " + file
	}
	if ruling := r.judge(file, url, answer); ruling.Step == Stop {
		return string(ruling.Fate) + ": " + ruling.Why
	}
	return "allows it: " + file
}

// judge turns rules that hold into a ruling. It requires that r.mu is held.
func (r *Robots) judge(file, url string, answer robots.Answer) Ruling {
	verdict := answer.Rules.Match(url)
	switch {
	case verdict.Allowed:
		return Ruling{Step: Go}
	case verdict.Line > 0:
		why := fmt.Sprintf("line %d of %s: %s", verdict.Line, file, verdict.Pattern)
		return Ruling{Step: Stop, Fate: Disallowed, Why: why}
	}
	if f, known := r.silent[file]; known {
		return Ruling{Step: Stop, Fate: f.fate, Why: f.why}
	}
	return Ruling{Step: Stop, Fate: RobotsUnreachable, Why: file, Until: answer.Until}
}

// RobotsResponse turns what a fetch brought into what package robots takes. A file that is not whole,
// or could not be decoded, may lack the line that forbids, and counts as none that could be had.
// What is beyond robots.MaxSize is not read anyway.
func RobotsResponse(resp *fetch.Response) robots.Response {
	beyond := resp.Truncated == fetch.CutLength && len(resp.Body) > robots.MaxSize
	whole := resp.Truncated == fetch.Whole || beyond
	if found := 200 <= resp.Status && resp.Status < 300; found && !whole {
		return robots.Response{}
	}
	return robots.Response{Status: resp.Status, Header: resp.Header, Body: resp.Body}
}

// Settled is what an answer for a robots.txt leads to.
type Settled struct {
	More     bool           // nothing yet: it is a redirect, to be followed by the request Next
	Next     robots.Request // to be made, if More
	Released []Item         // that waited
	Delay    time.Duration  // that the site asks for; 0 if it does not
	Sitemaps []string       // that it names, as absolute URLs
}

// Settle takes the answer to a request for a robots.txt.
func (r *Robots) Settle(req robots.Request, resp robots.Response, now time.Time) (s Settled) {
	answer, err := r.rules.Store(req, resp, now)
	switch {
	case err == nil && answer.State == robots.Needed:
		return Settled{More: true, Next: answer.Request}
	case err == nil && answer.State == robots.InFlight:
		return Settled{} // an answer that nobody waits for any more
	}
	s = settled(req.URL, answer)
	s.Released = r.release(req.For, func() {
		delete(r.silent, req.For)
		delete(r.unused, req.For)
	})
	return s
}

// settled returns what rules say beside what they forbid. url is where they come from.
func settled(url string, answer robots.Answer) (s Settled) {
	if answer.File != nil {
		s.Sitemaps = answer.File.SitemapURLs(url)
	}
	s.Delay, _ = answer.Rules.Delay()
	return s
}

// Silent notes that no answer came to a request for a robots.txt: then nothing may be asked of its
// server for a while (RFC 9309 §2.3.1.4), and items end with that fate. It returns those that waited.
func (r *Robots) Silent(req robots.Request, fate Fate, why string, now time.Time) []Item {
	r.mu.Lock()
	makeRoom(r.silent, maxSilent)
	r.silent[req.For] = failure{fate, why} // for whoever asks from the next line on
	r.mu.Unlock()
	_, _ = r.rules.Store(req, robots.Response{}, now) // its URL was located when it was asked for
	return r.release(req.For, func() {})
}

// Abandon notes that a request for a robots.txt was broken off on this side. That is no answer:
// what was known of the server before holds, and the next run asks again. The items that wait for
// it stay parked.
func (r *Robots) Abandon(req robots.Request) { r.rules.Abandon(req) }

// release takes what is parked, after a change under the same lock.
func (r *Robots) release(file string, change func()) []Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	released := r.parked[file]
	delete(r.parked, file)
	return released
}
