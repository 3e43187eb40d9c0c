// Package stepped is the scheduler of a paper, for comparison with package scheduler and for crawls
// that must not use more memory than they were given.
//
// It follows Ueda et al., "A parallel distributed crawler of producer-consumer modules" (section
// 5.2.1, Algorithms 1 and 2), to the letter: lists of URLs, of which each holds at most one URL per
// address, are visited one list after the other, a step apart.
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
// It never visits an address earlier than a step, or the delay of its last URL rounded up to steps,
// after the visit before it has ended. Each URL takes constant time, and the number of lists and
// counters is fixed, however many hosts there are.
//
// Its price, as the paper says: nothing is visited during the wait for a step; a list is done when
// its slowest page is; an address that has many URLs loses those that do not fit into the lists. It
// keeps one delay, that of the address.
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
	// Lists is how many steps ahead a URL may be put off; one that would have to wait longer is
	// dropped. More lists lose fewer URLs and keep less of their order.
	// 0 means DefaultLists; 2 is the least that works.
	Lists int

	// Counters is among how many counters the addresses are spread. Addresses that share a counter
	// wait for each other. 0 means DefaultCounters.
	Counters int

	// Step is the least time between two lists, and the unit to which delays are rounded up.
	// 0 means DefaultStep.
	Step time.Duration
}

// Scheduler is the paper's scheduler. It is not safe for concurrent use.
type Scheduler[T any] struct {
	step     time.Duration
	lists    [][]T
	counters []int64 // for each, the number of the next list that may take a URL

	current int64 // number of the list that is being visited or waited for
	out     int   // URLs of it that are being visited

	waiting bool      // for due, to release the current list
	due     time.Time // known while waiting

	queued  int
	dropped int64
	steps   int64
}

// New returns a Scheduler that holds nothing.
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
		step:     o.Step,
		lists:    make([][]T, max(o.Lists, 2)),
		counters: make([]int64, o.Counters),
		current:  -1,
	}
}

// Add puts an item into the first list that is far enough from the last URL of its address. delay
// is what the site asks for; up to a step it changes nothing. If all lists that are left are too
// near, the item is dropped, and Add reports that it was not added.
func (s *Scheduler[T]) Add(addr netip.Addr, delay time.Duration, item T) (added bool) {
	next := &s.counters[s.counter(addr)]
	apart := s.stepsOf(delay)
	if *next <= s.current {
		*next = s.current + apart
	}
	if *next >= s.current+int64(len(s.lists)) {
		s.dropped++
		return false
	}
	list := &s.lists[s.index(*next)]
	*next += apart
	*list = append(*list, item)
	s.queued++
	return true
}

// Next returns the items of the next list, all of which may be visited at once, if it is time for
// it. Otherwise it returns how long to wait, [Forever] if that is until the next call of Done or
// Add. The slice is the caller's.
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

// Done reports that the visit of one item has ended, well or not. The wait for the next list begins
// when all items of this one have.
func (s *Scheduler[T]) Done(now time.Time) {
	if s.out == 0 {
		return
	}
	if s.out--; s.out == 0 {
		s.advance(now)
	}
}

// advance goes on to the next list that holds something, and reports whether there is one. The wait
// before it takes one step, and one more for each empty list that it skips: a Crawl-delay may have
// been the reason to leave it empty.
//
// With all lists empty the paper's loop would sleep through each of them. That is left out, as it
// puts off what is added next for nothing: the counters keep the distances.
func (s *Scheduler[T]) advance(now time.Time) (found bool) {
	if s.queued == 0 {
		return false
	}
	s.due = now
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

// Stats is what a [Scheduler] holds and has done.
type Stats struct {
	Queued  int   // items in lists
	Out     int   // items that are being visited
	Dropped int64 // items for which no list was left
	Steps   int64 // waits, those for empty lists included
}

// Stats returns the present figures.
func (s *Scheduler[T]) Stats() Stats {
	return Stats{Queued: s.queued, Out: s.out, Dropped: s.dropped, Steps: s.steps}
}

// index returns the place of list number n.
func (s *Scheduler[T]) index(n int64) int { return int(n % int64(len(s.lists))) }

// maxSteps is more than any crawl takes, and can be added to the number of a list.
const maxSteps = math.MaxInt64 / 2

// stepsOf rounds a delay up to steps; the least is one.
func (s *Scheduler[T]) stepsOf(delay time.Duration) int64 {
	if delay <= s.step {
		return 1
	}
	return min(int64((delay-1)/s.step)+1, maxSteps)
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
