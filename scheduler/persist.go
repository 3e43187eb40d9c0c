package scheduler

import (
	"fmt"
	"iter"
	"math"
	"net/netip"
	"time"
)

// An Entry is what a Scheduler should remember across a restart about a host or about an address.
// With neither Host nor Addr it stands for all hosts, addresses and groups that have no entry, so
// that nothing is remembered of a host without a name. It is made for encoding/json and the like.
type Entry struct {
	Host       string        `json:",omitzero"`
	Addr       netip.Addr    `json:",omitzero"`
	Delay      time.Duration `json:",omitzero"` // by SetHost, or Options.HostDelay of all others
	Slow       time.Duration `json:",omitzero"` // the delay that its latency leads to
	Failures   int           `json:",omitzero"` // that the back-off counts
	RetryAfter time.Time     `json:",omitzero"`
}

// All returns an iterator over what a Scheduler that takes this one's place has to know to be
// polite: the delays that were asked for, failures, latencies, Retry-After. The first Entry stands
// for all that is not unusual, so that the number of entries is that of the unusual hosts and
// addresses, plus one.
//
// No entry tells when a host was visited, as most visits before a crash would be missing anyway:
// [Scheduler.Restore] takes all hosts for just visited. Nor are there tasks.
//
// The Scheduler can be used during the walk, which holds its lock for a few hundred entries at a
// time. What changes meanwhile may be missing.
func (s *Scheduler[T]) All(now time.Time) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		longest := max(s.opts.HostDelay, s.opts.AddrDelay, s.opts.GroupDelay)
		if !yield(Entry{Delay: longest}) {
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
	entry.Delay, entry.Slow, entry.Failures =
		time.Duration(x.asked), time.Duration(x.slow[0]), int(x.failures)
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

// Restore makes a Scheduler as polite as the one that gave an [Entry] must have been, whatever that
// one did afterwards until it was killed. Nothing is known of the visits in between. So the host or
// address counts as visited at now, and the Entry that stands for all others makes them all count
// so: the crawl starts with a break of a delay.
//
// Where the Scheduler knows of a longer delay or of more failures than the Entry, these stay, so
// that entries may come twice and in any order. An Entry that cannot be right is refused, and
// changes nothing.
func (s *Scheduler[T]) Restore(e Entry, now time.Time) error {
	if fault := e.fault(); fault != "" {
		name := e.Host
		if name == "" {
			name = e.Addr.String()
		}
		return fmt.Errorf("scheduler: restore entry of %s: %s", name, fault)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.advance(s.instant(now))
	switch {
	case e.Host != "":
		s.engine.restore(s.engine.use(e.Host), e, s.instant(e.RetryAfter))
	case e.Addr.IsValid():
		s.engine.restore(s.engine.useAddr(e.Addr), e, s.instant(e.RetryAfter))
	default:
		s.engine.restoreAll(int64(e.Delay))
	}
	s.changed()
	return nil
}

// fault tells what cannot be right about an Entry.
func (e Entry) fault() string {
	switch {
	case e.Delay < 0:
		return "negative delay"
	case e.Slow < 0:
		return "negative latency"
	case e.Failures < 0 || e.Failures > math.MaxUint8:
		return fmt.Sprintf("%d failures", e.Failures)
	case e.Host != "" && e.Addr.IsValid():
		return fmt.Sprintf("it names %s as well", e.Addr)
	}
	return ""
}

// restoreAll makes all limiters count as visited now, those that are known and those to come.
func (e *engine) restoreAll(delay int64) {
	for k := range e.restarted {
		e.restarted[k] = max(e.restarted[k], later(e.now, max(e.delay[k], delay)))
	}
	for i := uint32(1); i < e.limiters.used; i++ {
		if p := e.at(i); p.state != vacant {
			e.charge(i, e.restarted[p.kind]-e.delay[p.kind])
			e.replace(i)
		}
	}
}

func (e *engine) restore(i uint32, entry Entry, retry int64) {
	if e.at(i).kind == aHost {
		e.touch(i)
	}
	x := e.extraOf(i)
	x.start = max(x.start, e.now)
	x.failures = max(x.failures, uint8(entry.Failures))
	slow := max(x.slow[0], int64(entry.Slow))
	x.slow = [3]int64{slow, slow, slow}
	if e.at(i).kind == aHost {
		x.slow = [3]int64{slow}
		x.asked = max(x.asked, int64(entry.Delay))
	}
	if retry > e.now {
		x.retry = max(x.retry, min(retry, later(e.now, int64(e.opts.MaxRetryAfter))))
	}
	e.updateDue(i)
	e.replace(i)
}
