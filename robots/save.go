package robots

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"strings"

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
// iteration: hosts that are added or evicted may be missing, or yielded twice. A host with a
// request in flight is yielded in its previous state.
func (c *Cache) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		// Backwards, since the last host moves into the slot of one that is dropped.
		for next := math.MaxInt; next > 0; {
			var batch []state
			batch, next = c.batch(next)
			for i := range batch {
				if !yield(batch[i].entry()) {
					return
				}
			}
		}
	}
}

// batch copies the states before a slot, and returns the slot where it stopped.
func (c *Cache) batch(before int) (states []state, next int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for before = min(before, len(c.slots)); before > 0 && len(states) < allBatch; before-- {
		if h := c.slots[before-1]; h.known() {
			states = append(states, h.state)
		}
	}
	return states, before
}

// Restore adds an Entry that [Cache.All] yielded, at any time and in any order. If the host is
// known already, the newer file and the later expiry win. So a cache never loses information, and
// restoring twice changes nothing.
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
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.host(origin)
	h.merge(&restored)
	c.weigh(h)
	c.evict(1)
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
	case e.Source == "" && (len(e.Body) > 0 || e.ETag != "" || e.LastModified != ""):
		return e.wrong("Source", "missing, although there is a file")
	}
	return nil
}

// merge takes over the parts of other that are newer than those of s. Ties are decided by comparing
// the contents, so that the result does not depend on the order.
func (s *state) merge(other *state) {
	text, otherText := s.file.String(), other.file.String()
	said := cmp.Or(other.Fetched.Compare(s.Fetched), strings.Compare(otherText, text),
		strings.Compare(other.Source, s.Source), strings.Compare(other.ETag, s.ETag),
		strings.Compare(other.LastModified, s.LastModified))
	tried := cmp.Or(other.Expires.Compare(s.Expires),
		cmp.Compare(other.Failures, s.Failures), other.FailedSince.Compare(s.FailedSince),
		cmp.Compare(other.Status, s.Status), strings.Compare(other.Reason, s.Reason))
	if said > 0 {
		s.Fetched, s.Source, s.file = other.Fetched, other.Source, other.file
		s.ETag, s.LastModified = other.ETag, other.LastModified
	}
	if tried > 0 {
		s.Expires, s.Status = other.Expires, other.Status
		s.Failures, s.FailedSince, s.Reason = other.Failures, other.FailedSince, other.Reason
	}
}
