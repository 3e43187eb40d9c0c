package robots

import "time"

// ownPath is always allowed (RFC 9309, 2.2.2): nobody could learn the rules otherwise.
const ownPath = "/robots.txt"

// Rules is what a file asks of one crawler. It is a small immutable value, safe for concurrent
// use and for keeping: it keeps no more of its File than the text of the crawler's groups, or at
// most twice as much. The zero Rules allows everything and asks for no delay.
type Rules struct {
	set *ruleset
}

// Verdict is the answer to whether a URL may be fetched, and its reason.
type Verdict struct {
	Allowed bool   // whether the URL may be fetched
	Pattern string // of the rule that decided, as written; empty if none matched
	Line    int    // of that rule in the file, from 1; 0 if none matched
}

// Allowed reports whether a URL may be fetched. It is Match(url).Allowed, at times faster.
func (r Rules) Allowed(url string) bool {
	path := target(url)
	if path == ownPath || r.set == nil {
		return true
	}
	return r.set.allows(path)
}

// Match reports whether a URL may be fetched and which rule says so. Of several rules that
// would decide alike it names the first. A verdict that forbids without a rule means that the
// file was unreachable.
//
// The url is absolute, or the path and query of one. A fragment is ignored. What starts with
// neither a slash nor a scheme is taken for a host and its path.
func (r Rules) Match(url string) Verdict {
	path := target(url)
	if path == ownPath || r.set == nil {
		return Verdict{Allowed: true}
	}
	return r.set.match(path)
}

// Delay returns the Crawl-delay that the file asks for between two requests, and whether it
// asks for one. It may have a fraction, and is at most [MaxDelay]; what is not a plain decimal
// number is ignored, and of several the longest counts. A crawler with a group of its own does
// not inherit the delay of the group for *.
func (r Rules) Delay() (delay time.Duration, ok bool) {
	if r.set == nil {
		return 0, false
	}
	return r.set.delay, r.set.delayed
}

// allows is match without the reason, which the second engine could not give.
func (s *ruleset) allows(path string) bool {
	if s.second != nil {
		return s.second.Test(path)
	}
	return s.match(path).Allowed
}

// match is the verdict with its reason, which is always found by our own engine.
func (s *ruleset) match(path string) Verdict {
	if s.denyAll {
		return Verdict{}
	}
	v := s.own(path)
	if s.second != nil {
		// Taken from the engine that allows asks, so that the two cannot contradict each other.
		v.Allowed = s.second.Test(path)
	}
	return v
}

// own is the verdict of our own engine, which can judge any group.
func (s *ruleset) own(path string) Verdict {
	r := s.decider(path)
	if r == nil {
		return Verdict{Allowed: true}
	}
	return Verdict{Allowed: r.allow(), Pattern: r.written(s.text), Line: int(r.line())}
}

// decider returns the first rule in the order of before that matches, or nil.
func (s *ruleset) decider(path string) *rule {
	best := s.prefixes.longest(s.text, path)
	if len(s.wild) == 0 {
		return best
	}
	has := octetsIn(path)
	for i, needs := range s.needs {
		if needs&^has != 0 {
			continue // the cheapest of all comparisons, which fails for most rules
		}
		w := &s.wild[i]
		if best != nil && !w.before(best) {
			break // so are all that follow
		}
		if w.matches(s.text, path) {
			return w
		}
	}
	return best
}
