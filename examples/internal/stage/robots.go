package stage

import (
	"net/http"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/robots"
)

// robotsTTL is how long a robots.txt is believed (RFC 9309 §2.4).
const robotsTTL = 24 * time.Hour

// unreachableTTL is how long a server is left alone whose robots.txt could not be had.
const unreachableTTL = time.Hour

// maxRobotsHops is how many redirects of a robots.txt are followed (RFC 9309 §2.3.1.2).
const maxRobotsHops = 5

// maxRobots bounds how many servers' rules are kept; those of further ones are asked for again when
// they are needed again.
const maxRobots = 100_000

// A Step is what to do with an item next.
type Step int

// The steps.
const (
	Go   Step = iota // fetch it
	Stop             // it ends here
	Wait             // its server's rules are on their way; Settle gives it back
	Ask              // as Wait, and the caller has to fetch the rules
)

// A Ruling is what robots.txt says of an item.
type Ruling struct {
	Step Step
	Fate Fate   // of an item that ends
	File string // to be fetched, if Step is Ask
}

// Robots knows the rules of the servers of a crawl, and keeps the items whose server's rules are
// not there yet. Its methods are safe for concurrent use.
type Robots struct {
	agent string

	mu      sync.Mutex
	servers map[string]*server
}

// A server is what is known of one scheme, host and port.
type server struct {
	asked  bool // the file is being fetched
	closed Fate // of every item, if the file could not be had
	rules  robots.Rules
	until  time.Time
	parked []Item
}

// NewRobots returns an empty table for a crawler of that name.
func NewRobots(agent string) *Robots {
	return &Robots{agent: agent, servers: map[string]*server{}}
}

// Rule tells whether the item may be fetched now.
func (r *Robots) Rule(it Item, now time.Time) Ruling {
	file, err := robots.Locate(it.URL)
	if err != nil {
		return Ruling{Step: Stop, Fate: Disallowed}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.server(file)
	if !s.asked && now.Before(s.until) {
		return s.rule(it.URL)
	}
	s.parked = append(s.parked, it)
	if s.asked {
		return Ruling{Step: Wait}
	}
	s.asked = true
	return Ruling{Step: Ask, File: file}
}

// server finds or makes the entry of a file. It requires that r.mu is held.
func (r *Robots) server(file string) *server {
	s := r.servers[file]
	if s == nil {
		makeRoom(r.servers, maxRobots, func(s *server) bool { return !s.asked })
		s = &server{}
		r.servers[file] = s
	}
	return s
}

func (s *server) rule(url string) Ruling {
	switch {
	case s.closed != "":
		return Ruling{Step: Stop, Fate: s.closed}
	case s.rules.Allowed(url):
		return Ruling{Step: Go}
	}
	return Ruling{Step: Stop, Fate: Disallowed}
}

// Settle notes the robots.txt that was fetched. It returns the items that waited for it, and the
// delay that the site asks for, 0 if none.
func (r *Robots) Settle(file string, status int, body []byte, now time.Time) ([]Item, time.Duration) {
	found := server{rules: robots.FromResponse(status, body).Rules(r.agent), until: now.Add(robotsTTL)}
	if status == http.StatusTooManyRequests || status >= 500 {
		found.closed = RobotsUnreachable
	}
	delay, _ := found.rules.Delay()
	return r.settle(file, found), delay
}

// Unreachable notes that a robots.txt could not be had: then nothing may be asked of its server
// (RFC 9309 §2.3.1.4). It returns the items that waited for it.
func (r *Robots) Unreachable(file string, why Fate, now time.Time) []Item {
	return r.settle(file, server{closed: why, until: now.Add(unreachableTTL)})
}

func (r *Robots) settle(file string, found server) []Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.server(file)
	released := s.parked
	*s = found
	return released
}

// MayFollow says whether one more redirect of a robots.txt is to be followed.
func (it Item) MayFollow() bool { return it.Hops < maxRobotsHops }
