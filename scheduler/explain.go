package scheduler

import (
	"fmt"
	"iter"
	"net/netip"
	"time"
)

// A Rule is what keeps a host from being leased.
type Rule uint8

// The rules, by what they hold against a host.
const (
	NoRule             Rule = iota // nothing: it is ready, or nothing is queued
	RuleNotBefore                  // the NotBefore of its first task
	RuleHostDelay                  // Options.HostDelay
	RuleCrawlDelay                 // the delay that SetDelay was told
	RuleLatency                    // the latency of its last visit
	RuleBackoff                    // its failures
	RuleRetryAfter                 // what the server said
	RuleRestart                    // that it may have been visited before a restart
	RuleAddrDelay                  // Options.AddrDelay
	RuleAddrBackoff                // failures at its address
	RuleAddrRetryAfter             // what a server at its address said
	RuleGroupDelay                 // Options.GroupDelay
	RuleLease                      // as many leases on it as may be out
	RuleAddrLease                  // as many leases on its address as may be out
	RuleGroupLease                 // as many leases on its group as may be out
	RuleTurn                       // other hosts that have waited longer
	rules
)

// ruleNames complete the sentence "it waits for …".
var ruleNames = [rules]string{
	"nothing", "the time of its task", "the delay of a host", "its Crawl-delay",
	"its latency", "its back-off", "its Retry-After", "the delay after a restart",
	"the delay of its address", "the back-off of its address", "the Retry-After of its address",
	"the delay of its group", "its lease", "the lease of its address", "the lease of its group",
	"its turn",
}

// String returns a few words, such as "the delay of its address".
func (r Rule) String() string {
	if r >= rules {
		return fmt.Sprintf("Rule(%d)", uint8(r))
	}
	return ruleNames[r]
}

// A Reason says what holds a host now and when that ends, as of the latest time that the Scheduler
// was told. Its times are in the time zone of the machine. The zero Reason is that of a host that is
// not known.
type Reason struct {
	Known  bool
	Rule   Rule
	Until  time.Time  // when Rule ends if nothing happens before; zero if no time can tell
	Since  time.Time  // when the lease was given that Rule is about; zero if it is about none
	Addr   netip.Addr // of the first task, if it is known
	Group  string     // of the first task, if it has one
	Others int        // hosts that stand in the same line, up to 1000

	Queued   int
	Leased   int
	Failures int           // that the back-off of the host counts
	Oldest   time.Duration // how long ago the first task was added, to about a second

	// Pace is the time between two visits that its own delay and that of its address or group
	// admit, of which all in line get a share.
	Pace time.Duration
}

// Load returns how many tasks of the host are offered for each one that its delays admit. If all
// that is queued came within Oldest, or within the time over if that is longer, so many come as go
// at a Load of 1. At a higher one, intervals between visits that are planned are to be stretched by
// it: the overload of Tamura and Kitsuregawa, section 5.2. A caller who adds what is due once a day
// sets over to a day.
func (r Reason) Load(over time.Duration) float64 {
	period := max(r.Oldest, over, time.Nanosecond)
	return float64(r.Queued) * float64(r.Pace) / float64(period)
}

// String returns a sentence without its subject, such as "waits for its Crawl-delay until
// 2026-01-01 12:00:30.000, 3 tasks queued". It names no time zone: that of Since and Until.
func (r Reason) String() string {
	switch {
	case !r.Known:
		return "is not known"
	case r.Queued == 0:
		return "has nothing queued"
	case r.Rule == NoRule:
		return fmt.Sprintf("is ready, %d tasks queued", r.Queued)
	}
	text := "waits for " + r.Rule.String()
	switch r.Rule {
	case RuleAddrDelay, RuleAddrBackoff, RuleAddrRetryAfter, RuleAddrLease:
		text += " " + r.Addr.String()
	case RuleGroupDelay, RuleGroupLease:
		text += fmt.Sprintf(" %q", r.Group)
	}
	if r.Others > 0 {
		text += fmt.Sprintf(", in line with %d other hosts", r.Others)
	}
	if r.Others > 0 && !(r.Since.IsZero() && r.Until.IsZero()) {
		text += ","
	}
	const layout = "2006-01-02 15:04:05.000"
	if !r.Since.IsZero() {
		text += " that is out since " + r.Since.Format(layout)
	}
	if !r.Until.IsZero() {
		text += " until " + r.Until.Format(layout)
	}
	return fmt.Sprintf("%s, %d tasks queued", text, r.Queued)
}

// Explain says why a host is not leased. It takes constant time, unless that is a lease: then it
// looks at all that are out.
func (s *Scheduler[T]) Explain(host string) Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.book.lookup(aHost, host); i != 0 {
		return s.reason(i)
	}
	return Reason{}
}

// Hosts returns an iterator over all hosts that are known, with what Explain says of each. The
// Scheduler can be used meanwhile: what comes or goes during the walk may be missing, and what goes
// and comes again may be met twice.
func (s *Scheduler[T]) Hosts() iter.Seq2[string, Reason] {
	type known struct {
		host   string
		reason Reason
	}
	return func(yield func(string, Reason) bool) {
		batch := make([]known, 0, 256)
		for next := uint32(1); next != 0; {
			batch = batch[:0]
			s.mu.Lock()
			places := &s.book.places
			for ; next < places.used && len(batch) < cap(batch); next++ {
				if p := places.at(next); p.kind == aHost && p.state != vacant {
					batch = append(batch, known{s.book.name(next), s.reason(next)})
				}
			}
			if next >= places.used {
				next = 0
			}
			s.mu.Unlock()
			for _, k := range batch {
				if !yield(k.host, k.reason) {
					return
				}
			}
		}
	}
}

// reason requires that s.mu is held.
func (s *Scheduler[T]) reason(host uint32) Reason {
	b := &s.book
	p := b.places.at(host)
	if p.count == 0 && p.out == 0 {
		b.expire(host)
	}
	r := Reason{
		Known: true, Queued: int(p.count), Leased: int(p.out), Pace: time.Duration(b.pace(p)),
	}
	if p.manner != 0 {
		r.Failures = int(b.manners.at(p.manner).failures)
	}
	if p.head == 0 {
		return r
	}
	first := b.task(p.head)
	r.Addr, r.Group = b.ip(first.addrID()), b.name(first.group)
	r.Oldest = time.Duration(b.age(first))
	switch {
	case p.out >= b.most[aHost]:
		r.Rule, r.Since = RuleLease, s.leasedSince(host)
	case b.wake(p) > b.now:
		r.Rule, r.Until = b.hostRule(host), s.limited(b.wake(p))
	default:
		s.explainGates(&r, host, first)
	}
	return r
}

// explainGates fills in why the gates do not let a host through, if so. It requires that s.mu is
// held.
func (s *Scheduler[T]) explainGates(r *Reason, host uint32, first *task) {
	b := &s.book
	gate := b.closedGate(first)
	if b.places.at(host).state == inLine {
		line := uint32(b.timers.at(host).due)
		r.Others = b.others(line)
		r.Pace = max(r.Pace, shared(b.pace(b.places.at(line)), r.Others+1))
		if gate == 0 && b.places.at(line).head != host {
			r.Rule = RuleTurn
		}
	}
	if gate == 0 {
		return
	}
	g := b.places.at(gate)
	switch {
	case g.out < b.most[g.kind]:
		r.Rule, r.Until = b.delayRule(g), s.limited(g.due)
	case g.kind == aGroup:
		r.Rule, r.Since = RuleGroupLease, s.leasedSince(gate)
	default:
		r.Rule, r.Since = RuleAddrLease, s.leasedSince(gate)
	}
}

// shared returns the delay between two visits of one host if n take turns.
func shared(delay int64, n int) time.Duration {
	return time.Duration(times(float64(n), time.Duration(delay)))
}

// leasedSince returns when the longest lease on a place was given that is out. It looks at all that
// are out, which are not many. It requires that s.mu is held.
func (s *Scheduler[T]) leasedSince(place uint32) time.Time {
	first := int64(never)
	visits := &s.book.visits
	for i := uint32(1); i < visits.used; i++ {
		v := visits.at(i)
		if v.serial != 0 && (v.host == place || v.addr == place || v.group == place) {
			first = min(first, v.at)
		}
	}
	return s.limited(first)
}

// limited is time, with the zero time for what never comes.
func (s *Scheduler[T]) limited(at int64) time.Time {
	if at == never {
		return time.Time{}
	}
	return s.time(at)
}

// others counts the hosts in line at a gate but one, up to 1000.
func (b *book) others(gate uint32) (n int) {
	for i := b.places.at(gate).head; i != 0 && n <= 1000; i = b.timers.at(i).next {
		n++
	}
	return n - 1
}

// hostRule returns what a host with tasks waits for in the wheel.
func (b *book) hostRule(i uint32) Rule {
	p := b.places.at(i)
	if b.task(p.head).notBefore > p.due {
		return RuleNotBefore
	}
	return b.delayRule(p)
}

// delayRule returns why the due time of a place is what it is.
func (b *book) delayRule(p *place) Rule {
	usual := [kinds]Rule{RuleHostDelay, RuleAddrDelay, RuleAddrDelay, RuleGroupDelay}[p.kind]
	if p.manner == 0 {
		if p.due == b.restarted[p.kind] {
			return RuleRestart
		}
		return usual
	}
	m := b.manners.at(p.manner)
	pause := b.pause(p.kind, m.failures)
	switch {
	case p.due == m.retry && p.kind == aHost:
		return RuleRetryAfter
	case p.due == m.retry:
		return RuleAddrRetryAfter
	case b.pace(p) == b.delay[p.kind]:
		return usual
	case p.kind != aHost:
		return RuleAddrBackoff
	case pause >= max(m.asked, m.slow):
		return RuleBackoff
	case m.asked >= m.slow:
		return RuleCrawlDelay
	default:
		return RuleLatency
	}
}
