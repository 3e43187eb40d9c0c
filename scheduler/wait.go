package scheduler

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// A waiter is a call of Next or Wait that waits. It is in the list of those that take any host, or
// in the list of one host, until it gets a lease or an error.
type waiter[T any] struct {
	prev, next *waiter[T]
	host       uint32 // 0 if any
	lease      Lease[T]
	err        error
	ended      chan struct{} // is closed when it has a lease or an error
}

// waiters is a list of calls, in the order in which they came. The zero waiters is empty.
type waiters[T any] struct{ head, tail *waiter[T] }

func (l *waiters[T]) push(w *waiter[T]) {
	w.prev = l.tail
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
}

func (l *waiters[T]) remove(w *waiter[T]) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// blocked is who waits, guarded by the mutex of the Scheduler.
//
// Whatever makes a host ready hands the lease to a waiter at once, under the same lock: a call that
// ends with changed, or the timer, which is set for the next event as long as somebody waits. So a
// host that gets ready wakes one goroutine, no wake-up is lost, and nobody overtakes.
type blocked[T any] struct {
	any   waiters[T]             // calls of Next
	hosts map[uint32]*waiters[T] // calls of Wait
	count int
	timer *time.Timer // calls tick
	armed int64       // when; never if it is not set

	inVain bool  // somebody waits although there is something to do
	since  int64 // when that began
	waits  int64 // how often it began
	waited int64 // how long it was so
}

// note keeps the figures of waiting.
func (b *blocked[T]) note(now int64, queued int) {
	inVain := b.any.head != nil && queued > 0 || len(b.hosts) > 0
	if b.inVain {
		b.waited += now - b.since
	}
	if inVain && !b.inVain {
		b.waits++
	}
	b.inVain, b.since = inVain, now
}

// Next waits until some host is ready and returns the lease on it. Meanwhile tasks may be added
// and leases given back by others. It returns [ErrDrained] when there is nothing to wait for, and
// ctx's error when ctx ends first.
//
// Any number of goroutines may wait in Next. A task that gets ready wakes one of them. A call that
// does not wait, with a lease that does not leave the calling function, costs no allocation.
func (s *Scheduler[T]) Next(ctx context.Context) (*Lease[T], error) {
	return s.nextLease(ctx, new(Lease[T])) // inlined, so that the Lease may be a local of the caller
}

func (s *Scheduler[T]) nextLease(ctx context.Context, lease *Lease[T]) (*Lease[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.take(s.instant(time.Now()), lease) {
		s.mu.Unlock()
		return lease, nil
	}
	if s.drained() {
		s.mu.Unlock()
		return nil, ErrDrained
	}
	w := s.block(0)
	s.blocked.any.push(w)
	s.dispatch()
	s.mu.Unlock()
	return s.await(ctx, w, lease)
}

// Leases returns an iterator that calls Next until nothing is queued or leased any longer. An
// error, such as that of ctx, is yielded once, with a nil Lease, and ends the walk.
func (s *Scheduler[T]) Leases(ctx context.Context) iter.Seq2[*Lease[T], error] {
	return func(yield func(*Lease[T], error) bool) {
		for {
			lease, err := s.Next(ctx)
			if err == ErrDrained || !yield(lease, err) || err != nil {
				return
			}
		}
	}
}

// Wait waits until one host may be visited, and returns a lease without a task. It is for requests
// that are not worth a queue, as golang.org/x/time/rate.Limiter.Wait is for events. Callers get the
// host in the order of their calls, and before its queued tasks; at its address and in its group it
// comes before hosts that have only tasks, too.
//
// If ctx has a deadline before which the host cannot be visited, Wait returns an error that wraps
// context.DeadlineExceeded at once.
func (s *Scheduler[T]) Wait(ctx context.Context, host string) (*Lease[T], error) {
	return s.waitLease(ctx, host, new(Lease[T]))
}

func (s *Scheduler[T]) waitLease(
	ctx context.Context, host string, lease *Lease[T],
) (*Lease[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	e := &s.engine
	e.advance(s.instant(time.Now()))
	if e.full() {
		s.mu.Unlock()
		return nil, ErrFull
	}
	i := e.use(host)
	if deadline, ok := ctx.Deadline(); ok && e.earliest(i) > s.instant(deadline) {
		at := s.time(e.earliest(i))
		s.mu.Unlock()
		return nil, fmt.Errorf("scheduler: %s may not be visited before %s: %w",
			host, at.Format(time.RFC3339), context.DeadlineExceeded)
	}
	e.addWaiter(i)
	w := s.block(i)
	s.waitersOf(i).push(w)
	s.dispatch()
	s.mu.Unlock()
	return s.await(ctx, w, lease)
}

// waitersOf returns the list of the calls that wait for a host. It requires that s.mu is held.
func (s *Scheduler[T]) waitersOf(host uint32) *waiters[T] {
	b := &s.blocked
	if b.hosts == nil {
		b.hosts = make(map[uint32]*waiters[T])
	}
	if b.hosts[host] == nil {
		b.hosts[host] = new(waiters[T])
	}
	return b.hosts[host]
}

// block returns a new waiter, which is in no list yet. It requires that s.mu is held.
func (s *Scheduler[T]) block(host uint32) *waiter[T] {
	s.blocked.count++
	return &waiter[T]{host: host, ended: make(chan struct{})}
}

// unblock takes a waiter out of its list. It requires that s.mu is held.
func (s *Scheduler[T]) unblock(w *waiter[T]) {
	b := &s.blocked
	b.count--
	if w.host == 0 {
		b.any.remove(w)
	} else if l := b.hosts[w.host]; l.head == l.tail {
		delete(b.hosts, w.host)
	} else {
		l.remove(w)
	}
}

// await returns what a waiter gets.
func (s *Scheduler[T]) await(
	ctx context.Context, w *waiter[T], lease *Lease[T],
) (*Lease[T], error) {
	select {
	case <-w.ended:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.err == nil && w.lease.s == nil {
			s.engine.advance(s.instant(time.Now()))
			s.unblock(w)
			if w.host != 0 {
				s.engine.removeWaiter(w.host)
			}
			s.dispatch()
			return nil, ctx.Err()
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	*lease = w.lease
	return lease, nil
}

// changed has to follow everything that may make a host ready, or leave nothing to wait for. It
// requires that s.mu is held.
func (s *Scheduler[T]) changed() {
	if s.blocked.count > 0 {
		s.engine.advance(s.instant(time.Now()))
		s.dispatch()
	}
}

// dispatch hands the hosts that are ready to those who wait, and sets the timer. It requires that
// s.mu is held and that the engine has advanced.
func (s *Scheduler[T]) dispatch() {
	b := &s.blocked
	for b.count > 0 {
		level := uint8(waitLevel)
		if b.any.head != nil {
			level = 0
		}
		n := s.engine.next(level)
		if n == 0 {
			break
		}
		w := b.any.head
		if f := s.engine.flights.at(n); f.task == 0 {
			w = b.hosts[f.limiters[theHost]].head
		}
		s.unblock(w)
		s.fill(&w.lease, n)
		close(w.ended)
	}
	if b.any.head != nil && s.drained() {
		for w := b.any.head; w != nil; w = b.any.head {
			s.unblock(w)
			w.err = ErrDrained
			close(w.ended)
		}
	}
	b.note(s.engine.now, s.queued)
	s.arm()
}

// drained tells whether Next would wait in vain: no event is left that could make a task ready. A
// lease is one, as its holder may add what it finds, and so is a call of Wait, which gets one. It
// requires that s.mu is held.
func (s *Scheduler[T]) drained() bool {
	return s.queued == 0 && s.leased == 0 && s.producers == 0 && len(s.blocked.hosts) == 0
}

// arm sets the timer for the next event, if somebody waits. It requires that s.mu is held.
func (s *Scheduler[T]) arm() {
	b := &s.blocked
	at := int64(never)
	if b.count > 0 {
		at = s.engine.nextEvent()
	}
	if at == b.armed {
		return
	}
	b.armed = at
	switch wait := between(s.engine.now, at); {
	case wait == Forever && b.timer != nil:
		b.timer.Stop()
	case wait == Forever:
	case b.timer == nil:
		b.timer = time.AfterFunc(wait, s.tick)
	default:
		b.timer.Reset(wait)
	}
}

// tick is called by the timer.
func (s *Scheduler[T]) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked.armed = never
	s.engine.advance(s.instant(time.Now()))
	s.dispatch()
}
