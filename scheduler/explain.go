package scheduler

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Reason says what a host waits for and until when, as of the latest time that the Scheduler has
// seen. Its times are in the local time zone. The zero Reason stands for an unknown host.
type Reason struct {
	Known bool
	Rule  string     // what the host waits for, or would with work, such as "its Crawl-delay"; "" means nothing
	Until time.Time  // when that ends unless something happens earlier; zero if unknown
	Addr  netip.Addr // if it is known
	Group string     // if it has one

	Queued   int // number of tasks
	Callers  int // of Wait that wait for the host
	Leased   int
	Failures int // that the back-off counts
}

// String returns a sentence without its subject, such as "waits for its Crawl-delay until
// 2026-01-01 12:00:30.000, 3 tasks queued". It omits the time zone, which is that of Until.
func (r Reason) String() string {
	var work []string
	if r.Queued > 0 {
		work = append(work, counted(r.Queued, "task")+" queued")
	}
	if r.Callers > 0 {
		work = append(work, counted(r.Callers, "caller")+" waiting")
	}
	switch {
	case !r.Known:
		return "is not known"
	case len(work) == 0:
		return "has nothing queued"
	case r.Rule == "":
		return "is ready, " + strings.Join(work, ", ")
	}
	text := "waits for " + r.Rule
	if !r.Until.IsZero() {
		text += " until " + r.Until.Format("2006-01-02 15:04:05.000")
	}
	return text + ", " + strings.Join(work, ", ")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Explain says why a host is not leased, in constant time. If no host has this name, a port at its end
// is ignored, so that the Host of a URL will do.
func (s *Scheduler[T]) Explain(host string) Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.engine.lookup(aHost, host)
	if port := strings.LastIndexByte(host, ':'); i == 0 && port >= 0 {
		i = s.engine.lookup(aHost, strings.Trim(host[:port], "[]"))
	}
	if i == 0 {
		return Reason{}
	}
	return s.reason(i)
}

// Reasons returns an iterator over all known hosts, with the result of Explain for each. The
// Scheduler may be used during the walk, which may miss concurrent changes.
func (s *Scheduler[T]) Reasons() iter.Seq2[string, Reason] {
	type known struct {
		host   string
		reason Reason
	}
	return func(yield func(string, Reason) bool) {
		walk(&s.mu, &s.engine.hosts, func(k known) bool { return yield(k.host, k.reason) },
			func(i uint32) (known, bool) {
				if s.engine.at(i).state == vacant {
					return known{}, false
				}
				return known{s.engine.name(i), s.reason(i)}, true
			})
	}
}

// walk yields the results of get for the entries of a slab. It holds the mutex for a few hundred
// entries at a time, and not while it yields.
func walk[E, V any](
	mu *sync.Mutex, entries *slab[E], yield func(V) bool, get func(i uint32) (V, bool),
) {
	batch := make([]V, 0, 256)
	for next := uint32(1); next != 0; {
		batch = batch[:0]
		mu.Lock()
		last := min(next+uint32(cap(batch)), max(entries.used, 1))
		for ; next < last; next++ {
			if v, ok := get(next); ok {
				batch = append(batch, v)
			}
		}
		if next >= entries.used {
			next = 0
		}
		mu.Unlock()
		for _, v := range batch {
			if !yield(v) {
				return
			}
		}
	}
}

// reason requires that s.mu is held.
func (s *Scheduler[T]) reason(host uint32) Reason {
	e := &s.engine
	e.expire(host, false)
	p := e.host(host)
	r := Reason{
		Known: true, Queued: int(p.tasks), Leased: int(p.out &^ pendingBit),
		Addr: e.ip(p.addr), Group: e.name(p.group),
	}
	if p.extra != 0 {
		x := e.extras.at(p.extra)
		r.Failures, r.Callers = int(x.failures), int(x.waiters)
	}
	switch {
	case p.tasks == 0 && r.Callers == 0 && *e.due(host) <= e.now:
	case p.tasks == 0 && r.Callers == 0: // if it had work, it would have to wait
		r.Rule, r.Until = e.rule(host), s.time(*e.due(host))
	case p.out >= e.most[aHost]:
		r.Rule = "its lease"
	case p.last == 0 && r.Callers == 0:
		r.Rule = "the time of its tasks"
	case *e.due(host) > e.now:
		r.Rule, r.Until = e.rule(host), s.time(*e.due(host))
	case p.addr != 0 || p.group != 0:
		s.explainShared(&r, host)
	}
	return r
}

// explainShared explains a host that has an address or a group, and whose own delay has passed. It
// requires that s.mu is held.
func (s *Scheduler[T]) explainShared(r *Reason, host uint32) {
	e := &s.engine
	h := e.host(host)
	shared := [...]uint32{theAddr: h.addr, theGroup: h.group}
	names := [...]string{
		theAddr: "its address " + r.Addr.String(), theGroup: fmt.Sprintf("its group %q", r.Group),
	}
	at := theAddr // whose waitlist the host is in
	if h.state == atGroup || h.addr == 0 {
		at = theGroup
	}
	for _, which := range [...]int{at, theAddr + theGroup - at} {
		i := shared[which]
		if i == 0 {
			continue
		}
		switch p := e.shared(i); {
		case p.out >= e.most[p.kind]:
			r.Rule = "the lease of " + names[which]
			return
		case *e.due(i) > e.now:
			r.Rule, r.Until = e.rule(i)+" of "+names[which], s.time(*e.due(i))
			return
		case p.holder != 0 && p.holder != host:
			r.Rule = "another host of " + names[which]
			return
		}
	}
	if e.frontOf(e.shared(shared[at])) != host {
		r.Rule = "its turn at " + names[at]
	}
}

// rule returns the rule that determines the delay of a limiter.
func (e *engine) rule(i uint32) string {
	p := e.at(i)
	names := [...]string{
		"the delay of a host", "its Crawl-delay", "its latency", "its back-off", "its Retry-After",
		"the delay set for it",
	}
	if p.kind != aHost {
		names = [...]string{"the delay", "", "the latency", "the back-off", "the Retry-After", ""}
	}
	if p.extra == 0 {
		if *e.due(i) == e.unvisited(p.kind) {
			return "the restart"
		}
		return names[0]
	}
	x := e.extras.at(p.extra)
	switch pace, backoff := e.pace(p), e.backoff(p.kind, x.failures); {
	case *e.due(i) == x.retry:
		return names[4]
	case pace == e.delay[p.kind]:
		return names[0]
	case backoff >= max(x.wanted, x.asked, x.slow[0]):
		return names[3]
	case x.wanted >= max(x.asked, x.slow[0]):
		return names[5]
	case x.asked >= x.slow[0]:
		return names[1]
	default:
		return names[2]
	}
}

// Stats describes the state of a [Scheduler], as of the latest time that it has seen. Hosts is the
// sum of Idle, Waiting, Ready and Leased. Hosts, addresses and groups that are no longer needed may
// still be counted for a while.
type Stats struct {
	Queued int // tasks that were added and not yet leased
	Hosts  int // that are known
	Addrs  int // that are known
	Groups int // that are known

	Idle    int // hosts with nothing to do now
	Waiting int // hosts with tasks that wait for their delay, their address or their group
	Ready   int // hosts that could be leased now
	Leased  int // hosts with as many leases as they may have, or with leases and no more tasks

	Out   int   // outstanding leases
	Given int64 // leases so far
	Lost  int64 // leases without Done within Options.LeaseTimeout

	// Waits counts how often Next had to wait although tasks were queued, or Wait had to wait.
	// Waited is the total time. Calls that wait at the same time count once.
	Waits  int64
	Waited time.Duration
}

// Stats returns the current Stats in constant time.
func (s *Scheduler[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.engine
	busy := e.known[aHost] - e.inState[idle] - e.inState[leased]
	st := Stats{
		Queued: s.queued,
		Hosts:  e.known[aHost],
		Addrs:  e.known[anAddr],
		Groups: e.known[aGroup],

		Idle:   e.inState[idle],
		Ready:  min(e.ready.count, busy),
		Leased: e.inState[leased],

		Out:   s.leased,
		Given: int64(e.serial),
		Lost:  e.lost,

		Waits:  s.blocked.waits,
		Waited: time.Duration(s.blocked.waited),
	}
	st.Waiting = busy - st.Ready
	return st
}
