package robots

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// known reports whether anything was learned, so that the state is worth saving.
func (s *state) known() bool { return !s.Expires.IsZero() }

// entry returns the plain value, with its own copy of the body.
func (s *state) entry() Entry {
	e := s.Entry
	if s.file != nil {
		e.Body = []byte(s.file.String())
	}
	return e
}

// allBatch is how many states All copies at a time under the lock.
const allBatch = 256

// All yields what the cache knows, in no particular order. The cache may be used during the
// iteration: hosts that are added or evicted may be missing. A host with a request in flight is yielded
// in its previous state. Listing the hosts at the beginning locks the cache for about 50 ns for each.
func (c *Cache) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		c.mu.Lock()
		origins := slices.Collect(maps.Keys(c.hosts))
		c.mu.Unlock()
		for batch := range slices.Chunk(origins, allBatch) {
			for _, s := range c.states(batch) {
				if !yield(s.entry()) {
					return
				}
			}
		}
	}
}

// states copies what is known about some hosts.
func (c *Cache) states(origins []string) (states []state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, origin := range origins {
		if h := c.hosts[origin]; h != nil && h.known() {
			states = append(states, h.state)
		}
	}
	return states
}

// Restore adds an Entry that [Cache.All] yielded, at any time and in any order. If the host is
// known already, the newer answer wins, with its expiry, and failures to reach the host count as well
// if their wait was not over when it came: they may be later. So a merge never allows what both
// forbid, and restoring twice changes nothing.
//
// Expired entries are kept: they are the last copy for a host that becomes unreachable. An
// impossible Entry is refused with an error that names the field, and changes nothing.
func (c *Cache) Restore(e Entry) error {
	origin, err := rep.Origin(e.URL)
	if err != nil || origin+rep.Path != e.URL {
		return e.wrong("URL", "want what robotstxt.Locate returns")
	}
	if err := e.check(); err != nil {
		return err
	}
	restored := state{Entry: e}
	restored.Body = nil
	if e.Source != "" {
		restored.file = robotstxt.Parse(e.Body)
	}
	file := restored.current()
	rules := file.Rules(c.options.Agent) // compiled without the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.host(origin)
	if h.merge(&restored); h.current() == file {
		h.rules = rules
	}
	if h.flight.Flight == 0 {
		c.park(h)
	}
	c.weigh(h)
	c.evict(h)
	return nil
}

func (e *Entry) wrong(field, why string) error {
	return fmt.Errorf("robots: restore %q: %s: %s", e.URL, field, why)
}

// check refuses entries that no sequence of responses can produce. A damaged entry must not allow
// anything.
func (e *Entry) check() error {
	last := (&Response{Status: e.Status, Whole: true}).File()
	switch {
	case e.Expires.IsZero():
		return e.wrong("Expires", "missing")
	case e.Failures < 0 || (e.Failures == 0) != e.FailedSince.IsZero():
		return e.wrong("Failures", "does not agree with FailedSince")
	case e.Failures > maxFailures:
		return e.wrong("Failures", "too many")
	case e.Failures == 0 && e.Reason != "":
		return e.wrong("Reason", "nothing failed")
	case len(e.Reason) > maxReason:
		return e.wrong("Reason", "too long")
	case e.Failures == 0 && e.Fetched.IsZero():
		return e.wrong("Fetched", "missing, although nothing failed")
	case e.Failures == 0 && last == nil:
		return e.wrong("Status", "is a failure, but Failures is 0")
	case e.Fetched.IsZero() && e.Source != "":
		return e.wrong("Fetched", "missing, although there is a file")
	case e.Failures == 0 && (e.Source != "") != (found(e.Status) || e.Status == http.StatusNotModified):
		return e.wrong("Source", "does not agree with Status")
	case e.Source != "" && e.Source != e.URL && !isTarget(e.Source):
		return e.wrong("Source", "no redirect leads there")
	case !canBeSent(e.ETag) || !canBeSent(e.LastModified):
		return e.wrong("ETag or LastModified", "cannot be sent")
	case e.Source == "" && (len(e.Body) > 0 || e.ETag != "" || e.LastModified != ""):
		return e.wrong("Source", "missing, although there is a file")
	}
	return nil
}

// merge takes over what is newer in other. What the host said and whether it was reached later are one
// verdict: a state without a file allows everything, unless an attempt has failed since. So the state with
// the newer answer counts, and of the other one no more than failures that may have come after that
// answer, which can only forbid. When the last one came is not known, but it was before its expiry. So
// the order of merges makes no difference, unless two answers came at the same time.
func (s *state) merge(other *state) {
	newer, older := *s, *other
	if older.Fetched.After(newer.Fetched) {
		newer, older = older, newer
	}
	*s = newer
	lasts := newer.Fetched // until when what is known counts
	if newer.Failures > 0 {
		lasts = newer.Expires
	}
	if older.Failures > 0 && older.Expires.After(lasts) {
		s.Expires, s.Status = older.Expires, older.Status
		s.Failures, s.FailedSince, s.Reason = older.Failures, older.FailedSince, older.Reason
	}
}
