package scheduler

import (
	"fmt"
	"iter"
	"math"
	"net/netip"
	"time"
)

// An Entry is the state of a host or of an address that should survive a restart. Without Host and
// Addr it stands for all hosts, addresses and groups that have no entry. It can be encoded with
// encoding/json and similar packages, unless the name of the host is not valid UTF-8.
type Entry struct {
	Host       string        `json:",omitzero"`
	Addr       netip.Addr    `json:",omitzero"`
	Delay      time.Duration `json:",omitzero"` // of Host
	CrawlDelay time.Duration `json:",omitzero"` // of Host
	Slow       time.Duration `json:",omitzero"` // the delay that results from its latency
	Failures   int           `json:",omitzero"` // as counted for the back-off
	RetryAfter time.Time     `json:",omitzero"`
}

// All returns an iterator over the state that a later Scheduler needs to remain polite: delays set
// by SetHost, failures, latencies and Retry-After. The first Entry stands for all hosts and
// addresses in their default state; one more follows for each of the others, except for a host with
// an empty name.
//
// Entries do not contain the times of visits, since most visits before a crash would be missing
// anyway: [Scheduler.Restore] treats all hosts as just visited. They do not contain tasks either.
//
// The Scheduler may be used during the walk, which locks it for a few hundred entries at a time and
// may miss concurrent changes.
func (s *Scheduler[T]) All(now time.Time) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if !yield(Entry{}) {
			return
		}
		walk(&s.mu, &s.engine.extras, yield, func(i uint32) (Entry, bool) {
			return s.entry(s.engine.extras.at(i), now)
		})
	}
}

// entry returns the Entry for an extra. It requires that s.mu is held.
func (s *Scheduler[T]) entry(x *extra, now time.Time) (entry Entry, ok bool) {
	e, owner := &s.engine, x.owner
	if owner == 0 {
		return entry, false
	}
	if e.expire(owner, false); x.owner == 0 {
		return entry, false
	}
	p := e.at(owner)
	entry.Delay, entry.CrawlDelay = time.Duration(x.wanted), time.Duration(x.asked)
	entry.Slow, entry.Failures = time.Duration(x.slow[0]), int(x.failures)
	if p.kind != aHost {
		entry.Slow = time.Duration(min(x.slow[0], x.slow[1], x.slow[2]))
	}
	if wait := between(s.instant(now), max(x.retry, s.instant(now))); wait > 0 {
		entry.RetryAfter = now.Add(wait)
	}
	if entry == (Entry{}) {
		return entry, false
	}
	if p.kind == aHost {
		entry.Host = e.name(owner)
	} else {
		entry.Addr = e.ip(owner)
	}
	return entry, entry.Host != "" || entry.Addr.IsValid()
}

// Restore applies an [Entry] of an earlier Scheduler, even if that one continued to make visits
// until it was killed. Since those visits are unknown, the host or address counts as visited at
// now. The Entry for all others makes all of them count as visited at now, so the crawl starts with
// a pause of one delay of the current Options. Its cost is in proportion to the hosts, once for each
// now, so that a whole file should have the same.
//
// A longer delay or a higher number of failures in the Scheduler remains, so entries may come twice
// and in any order. Restore returns an error for an invalid Entry, or [ErrFull], and changes
// nothing.
func (s *Scheduler[T]) Restore(e Entry, now time.Time) error {
	if fault := e.fault(); fault != "" {
		name := e.Host
		switch {
		case name != "":
		case e.Addr.IsValid():
			name = e.Addr.String()
		default:
			name = "all others"
		}
		return fmt.Errorf("scheduler: restore entry of %s: %s", name, fault)
	}
	if e.Addr.IsValid() && !s.address(e.Addr).IsValid() {
		return nil // exempt now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present()
	if s.engine.full() {
		return ErrFull
	}
	s.engine.advance(s.instant(now))
	switch {
	case e.Host != "":
		s.engine.restore(s.engine.use(e.Host), e, s.instant(e.RetryAfter))
	case e.Addr.IsValid():
		s.engine.restore(s.engine.useAddr(e.Addr), e, s.instant(e.RetryAfter))
	default:
		s.engine.restoreAll()
	}
	s.changed()
	return nil
}

// fault returns what is impossible about an Entry.
func (e Entry) fault() string {
	switch {
	case e.Delay < 0 || e.CrawlDelay < 0:
		return "negative delay"
	case e.Host == "" && (e.Delay != 0 || e.CrawlDelay != 0):
		return "only hosts have delays"
	case e.Slow < 0:
		return "negative latency"
	case e.Failures < 0 || e.Failures > math.MaxUint8:
		return fmt.Sprintf("%d failures", e.Failures)
	case e.Host != "" && e.Addr.IsValid():
		return fmt.Sprintf("it names %s as well", e.Addr)
	}
	return ""
}

// restoreAll makes all limiters count as visited now, including those added later. That it looks at
// every limiter at most once at a time bounds the cost of a file with many such entries.
func (e *engine) restoreAll() {
	if e.restarted == e.now {
		return
	}
	e.restarted = e.now
	for half, used := range [...]uint32{e.hosts.used, e.shares.used} {
		for i := uint32(1); i < used; i++ {
			i := i + uint32(half)*sharedBit
			if p := e.at(i); p.state != vacant {
				e.charge(i, e.now)
			}
		}
	}
}

func (e *engine) restore(i uint32, entry Entry, retry int64) {
	x := e.extraOf(i)
	x.start = max(x.start, e.now)
	failures := uint8(0) // more than what reaches the bound are not counted live, either
	for k := e.at(i).kind; int(failures) < entry.Failures && e.backoff(k, failures) < e.backoff(k, failures+1); {
		failures++
	}
	x.failures = max(x.failures, failures)
	slow := max(x.slow[0], min(int64(entry.Slow), maxSlow))
	x.slow = [3]int64{slow, slow, slow}
	if e.at(i).kind == aHost {
		x.slow = [3]int64{slow}
		x.wanted = max(x.wanted, int64(entry.Delay))
		x.asked = max(x.asked, min(int64(entry.CrawlDelay), retention))
	}
	if retry > e.now {
		x.retry = max(x.retry, min(retry, later(e.now, e.longestPause(e.at(i).kind, x))))
	}
	e.updateDue(i)
}
