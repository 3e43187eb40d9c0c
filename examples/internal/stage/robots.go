package stage

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// A Step is what to do with an item next.
type Step int

// The steps.
const (
	Go   Step = iota // fetch it
	Stop             // the item ends here
	Wait             // the rules have been requested; Answer returns the item
	Ask              // as Wait, and the caller must request the rules
)

// A Ruling is the decision on an item by robots.txt.
type Ruling struct {
	Step    Step
	Fate    Fate           // of an item that ends
	Why     string         // of the end: the deciding line, or the failure
	Until   time.Time      // when the rules of an unreachable server are requested again, or zero
	Request robots.Request // to be made, if Step is Ask

	// News has the consequences of rules from an earlier crawl, on their first use in this crawl,
	// and of rules that became known in another way; otherwise nil.
	News *Answered
}

// Robots applies robots.txt to items. Its methods are safe for concurrent use.
type Robots struct {
	rules   *robots.Cache
	pending robots.Pending[Item]
	agent   string

	mu      sync.Mutex
	silent  map[string]failure  // servers that did not answer at all, by the URL of the robots.txt
	unused  map[string]struct{} // servers whose rules are from a file and not used yet
	changed map[string]struct{} // servers that have answered, or not, since the last Save
}

// A failure is why a server gave no answer.
type failure struct {
	fate Fate
	why  string
}

// maxSilent bounds the failures that are remembered in detail; of others only the fact is known.
const maxSilent = 100_000

// NewRobots returns a table with the rules for a crawler with the given name. The rules must be
// patient: a request waits in the queue like any other, for any time, and is not lost.
func NewRobots(agent string, rules *robots.Cache) *Robots {
	return &Robots{
		rules:   rules,
		pending: robots.Pending[Item]{Cache: rules, Max: -1}, // the crawl bounds its open items
		agent:   agent,
		silent:  map[string]failure{},
		unused:  map[string]struct{}{},
		changed: map[string]struct{}{},
	}
}

// Rule decides whether the item may be fetched now.
func (r *Robots) Rule(it Item, now time.Time) Ruling {
	answer, ready, err := r.pending.Lookup(it.URL, it, now)
	switch {
	case errors.Is(err, robots.ErrFull):
		return Ruling{Step: Stop, Fate: QueueFull, Why: err.Error()}
	case err != nil:
		return Ruling{Step: Stop, Fate: Disallowed, Why: err.Error()}
	case answer.Request != nil:
		return Ruling{Step: Ask, Request: *answer.Request}
	case !answer.Known:
		return Ruling{Step: Wait}
	}
	file, _ := robotstxt.Locate(it.URL)
	ruling := r.apply(file, it.URL, answer.Rules)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, unused := r.unused[file]; unused || len(ready) > 0 {
		delete(r.unused, file)
		news := answered(file, answer.Rules)
		news.Released = ready
		ruling.News = &news
	}
	return ruling
}

// Forbids reports whether the rules for a URL are known and disallow it.
func (r *Robots) Forbids(url string, now time.Time) bool {
	rules, known := r.rules.Get(url, now)
	return known && !rules.Allowed(url)
}

// Explain describes the known rules for a URL, without requesting them.
func (r *Robots) Explain(url string, now time.Time) string {
	file, err := robotstxt.Locate(url)
	if err != nil {
		return err.Error()
	}
	rules, known := r.rules.Get(url, now)
	if _, found := r.rules.InFlight(url); !known && found {
		return "being requested: " + file
	}
	if !known {
		return "not requested yet: " + file
	}
	if ruling := r.apply(file, url, rules); ruling.Step == Stop {
		return ruling.Fate.String() + ": " + ruling.Why
	}
	return "allows it: " + file
}

// apply turns valid rules into a ruling.
func (r *Robots) apply(file, url string, rules robotstxt.Rules) Ruling {
	verdict := rules.Match(url)
	switch {
	case verdict.Allowed:
		return Ruling{Step: Go}
	case verdict.Line > 0:
		why := fmt.Sprintf("line %d of %s: %s", verdict.Line, file, verdict.Pattern)
		return Ruling{Step: Stop, Fate: Disallowed, Why: why}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, known := r.silent[file]; known {
		return Ruling{Step: Stop, Fate: f.fate, Why: f.why}
	}
	known, _ := r.rules.Entry(file)
	return Ruling{Step: Stop, Fate: RobotsUnreachable, Why: file + ": " + known.Reason, Until: known.Expires}
}

// RobotsResponse converts a response for package robots. A body that is incomplete, or could not be
// decoded, may lack the line that forbids.
func RobotsResponse(resp *fetch.Response) robots.Response {
	status := resp.Status
	if Wall(resp) != "" {
		status = http.StatusServiceUnavailable // the rules exist, and nobody could read them
	}
	return robots.Response{
		Status: status, Header: resp.Header, Body: resp.Body,
		Whole: resp.Truncated == fetch.Whole,
	}
}

// Answered has the consequences of a response for a robots.txt.
type Answered struct {
	More     bool           // it is a redirect, to be followed by the request Next
	Next     robots.Request // to be made, if More
	Released []Item         // that have waited, to be ruled again
	Delay    time.Duration  // Crawl-delay of the site; 0 if it has none
	Sitemaps []string       // that it names, as absolute URLs
}

// Answer processes the response to a request for a robots.txt.
func (r *Robots) Answer(req robots.Request, resp robots.Response, now time.Time) (s Answered) {
	r.mu.Lock()
	delete(r.silent, req.For)
	delete(r.unused, req.For)
	r.mu.Unlock()
	answer, released, err := r.store(req, resp, now)
	switch {
	case err == nil && answer.Request != nil:
		return Answered{More: true, Next: *answer.Request}
	case err != nil || !answer.Known:
		return Answered{Released: released} // a response that is no longer needed
	}
	s = answered(req.URL, answer.Rules)
	s.Released = released
	return s
}

// MaxNamed bounds the sitemaps that are read of one robots.txt, each of which may have kilobytes.
const MaxNamed = 1000

// answered returns the consequences of rules besides their verdicts. url is where they come from.
func answered(url string, rules robotstxt.Rules) (s Answered) {
	for sitemap := range rules.File().SitemapURLs(url) {
		if s.Sitemaps = append(s.Sitemaps, sitemap); len(s.Sitemaps) == MaxNamed {
			break
		}
	}
	s.Delay, _ = rules.Delay()
	return s
}

// Silent records that a request for a robots.txt got no answer. Then its server may not be visited
// for a while (RFC 9309 §2.3.1.4), and items end with the given fate. It returns the waiting items.
func (r *Robots) Silent(req robots.Request, fate Fate, why string, now time.Time) []Item {
	r.mu.Lock()
	makeRoom(r.silent, maxSilent)
	r.silent[req.For] = failure{fate, why}
	r.mu.Unlock()
	_, released, _ := r.store(req, robots.Response{Reason: why}, now) // its URL is valid
	return released
}

// store stores a response, of which the next Save takes note.
func (r *Robots) store(
	req robots.Request, resp robots.Response, now time.Time,
) (answer robots.Answer, released []Item, err error) {
	answer, released, err = r.pending.Store(req, resp, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed[req.For] = struct{}{}
	return answer, released, err
}

// Refuse records that a robots.txt will not be requested. It returns the waiting items.
func (r *Robots) Refuse(req robots.Request) []Item { return r.pending.Abandon(req) }

// Abandon records that this side canceled a request for a robots.txt. That is not an answer:
// earlier rules remain valid, and the next run requests them again. The waiting items stay parked.
func (r *Robots) Abandon(req robots.Request) { r.rules.Abandon(req) }
