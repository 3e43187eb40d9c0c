// Package stepped implements the scheduler of a paper, for comparison with package scheduler and
// for crawls with a fixed memory budget.
//
// It follows Ueda et al., "A parallel distributed crawler of producer-consumer modules" (section
// 5.2.1, Algorithms 1 and 2): URLs are put into lists, with at most one URL per address in each, and
// the lists are visited one after another, a step apart. It differs in one point: there, a URL that
// is dropped for its long delay closes its address for that long.
//
//	for {
//		items, wait := s.Next(time.Now())
//		if items == nil {
//			time.Sleep(wait) // or until the next Add or Done
//			continue
//		}
//		for _, item := range items {
//			visit(item) // in parallel, if you like
//			s.Done(time.Now())
//		}
//	}
//
// After a visit has ended, its address is not visited for a step, or for the delay of that URL
// rounded up to steps. Each URL takes constant time, and the number of lists and counters is fixed,
// independent of the number of hosts.
//
// Its price, as the paper says: nothing is visited during the wait for a step; a list takes as long
// as its slowest page; an address with too many URLs loses those that do not fit into the lists. It
// knows only the delays of addresses. IPv4 addresses with the same last two octets share one of the
// default counters, so whoever rents such an address can keep a site from being visited, by a delay of
// a day and a few URLs. Bound the delays that you pass to Add, or take package scheduler, in which
// strangers share no counter.
package stepped

import (
	"encoding/binary"
	"math"
	"net/netip"
	"time"
)

// The defaults, which the zero [Options] stands for, are those of the paper. Forever is the wait
// that [Scheduler.Next] reports when only a call of Done or Add can end it.
const (
	DefaultLists    = 1 << 10
	DefaultCounters = 1 << 16
	DefaultStep     = 5 * time.Second

	Forever = time.Duration(math.MaxInt64)
)

// Options sizes a [Scheduler]. The zero Options are those of the paper.
type Options struct {
	// Lists is how many steps ahead a URL may be scheduled. A URL that would have to wait longer is
	// dropped. More lists lose fewer URLs and preserve less of their order. 0 means DefaultLists;
	// the minimum is 2.
	Lists int

	// Counters is the number of counters that the addresses share. Addresses with the same counter
	// wait for each other. 0 means DefaultCounters.
	Counters int

	// Step is the minimum time between two lists, and the unit to which delays are rounded up.
	// 0 means DefaultStep; the minimum is a microsecond.
	Step time.Duration
}

// Scheduler is the paper's scheduler. It is not safe for concurrent use.
type Scheduler[T any] struct {
	step     time.Duration
	lists    [][]T
	counters []int64 // for each, the number of the next list that may take a URL

	current int64 // number of the list that is being visited or waited for
	out     int   // its URLs in flight

	waiting bool      // for due, to release the current list
	due     time.Time // known while waiting
	ended   time.Time // while nothing is queued or in flight: the end of the current step, if any

	queued  int
	dropped int64
	steps   int64
}

// New returns an empty Scheduler.
func New[T any](o Options) *Scheduler[T] {
	if o.Lists <= 0 {
		o.Lists = DefaultLists
	}
	if o.Counters <= 0 {
		o.Counters = DefaultCounters
	}
	if o.Step <= 0 {
		o.Step = DefaultStep
	}
	return &Scheduler[T]{
		step:     max(o.Step, time.Microsecond), // so that the steps of centuries can be counted
		lists:    make([][]T, max(o.Lists, 2)),
		counters: make([]int64, o.Counters),
		current:  -1,
	}
}

// Add puts an item into the first list that is far enough from the last URL of its address. delay
// is what the site asks for; up to a step it has no effect, and beyond a day it counts as a day. If
// none of the remaining lists is far enough, the item is dropped, and Add reports that it was not
// added.
func (s *Scheduler[T]) Add(addr netip.Addr, delay time.Duration, item T) (added bool) {
	counter := s.counter(addr)
	at, apart := s.counters[counter], s.stepsOf(delay)
	if at <= s.current {
		at = s.current + apart
	}
	if at >= s.current+int64(len(s.lists)) {
		s.dropped++
		return false
	}
	list := &s.lists[s.index(at)]
	s.counters[counter] = at + apart
	*list = append(*list, item)
	s.queued++
	return true
}

// Next returns the items of the next list, if it is time for it. All of them may be visited at the
// same time. Otherwise it returns how long to wait, or [Forever] if only a call of Done or Add can
// end the wait. The slice is the caller's. After a while without items, call Next before Add, so that
// the steps since then count.
func (s *Scheduler[T]) Next(now time.Time) ([]T, time.Duration) {
	if s.out > 0 {
		return nil, Forever
	}
	if !s.waiting && !s.advance(now) {
		return nil, Forever
	}
	if wait := s.due.Sub(now); wait > 0 {
		return nil, wait
	}
	list := &s.lists[s.index(s.current)]
	items := *list
	*list = nil
	s.waiting = false
	s.out = len(items)
	s.queued -= len(items)
	return items, 0
}

// Done reports that the visit of one item has ended, successfully or not. The wait for the next
// list begins when the visits of all items of this one have ended.
func (s *Scheduler[T]) Done(now time.Time) {
	if s.out == 0 {
		return
	}
	if s.out--; s.out == 0 {
		s.advance(now)
	}
}

// advance moves to the next list that is not empty, and reports whether there is one. It waits one
// step, and one more for each empty list that it skips, as a Crawl-delay may be the reason that it
// is empty.
//
// With all lists empty the paper's loop sleeps through each of them. Here these steps are counted
// when they are over, so that items added meanwhile need not wait for the rest.
func (s *Scheduler[T]) advance(now time.Time) (found bool) {
	if s.queued == 0 {
		s.countIdle(now)
		return false
	}
	s.due, s.ended = now, time.Time{}
	for {
		s.current++
		s.steps++
		s.due = s.due.Add(s.step)
		if len(s.lists[s.index(s.current)]) > 0 {
			s.waiting = true
			return true
		}
	}
}

// countIdle moves past the lists whose steps are over while all lists are empty.
func (s *Scheduler[T]) countIdle(now time.Time) {
	if s.ended.IsZero() {
		s.ended = now
	}
	if steps := now.Sub(s.ended) / s.step; steps > 0 {
		s.current += int64(steps)
		s.steps += int64(steps)
		s.ended = s.ended.Add(steps * s.step)
	}
}

// Stats describes the state of a [Scheduler].
type Stats struct {
	Queued  int   // items in lists
	Out     int   // items in flight
	Dropped int64 // items for which no list was left
	Steps   int64 // waits, including those for empty lists
}

// Stats returns the current Stats.
func (s *Scheduler[T]) Stats() Stats {
	return Stats{Queued: s.queued, Out: s.out, Dropped: s.dropped, Steps: s.steps}
}

// index returns the index of list number n.
func (s *Scheduler[T]) index(n int64) int { return int(n % int64(len(s.lists))) }

// maxDelay bounds the delay that a site may ask for, since other addresses may have its counter.
const maxDelay = 24 * time.Hour

// stepsOf rounds a delay up to steps, at least one.
func (s *Scheduler[T]) stepsOf(delay time.Duration) int64 {
	if delay <= s.step {
		return 1
	}
	return max(1, int64((min(delay, maxDelay)-1)/s.step)+1)
}

// counter takes an IPv4 address as a number, as the paper does, and folds an IPv6 address.
func (s *Scheduler[T]) counter(addr netip.Addr) int {
	bytes := addr.As16()
	high := binary.BigEndian.Uint64(bytes[:8])
	low := binary.BigEndian.Uint64(bytes[8:])
	if addr.Unmap().Is4() {
		high, low = 0, low&0xffffffff
	}
	return int((high*31 + low) % uint64(len(s.counters)))
}
