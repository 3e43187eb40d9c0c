package scheduler

import (
	"container/list"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/internal/cause"
)

// A waiter is a call of Next, which takes any host, or of Wait.
type waiter[T any] struct {
	host  uint32        // 0 means any
	at    *list.Element // in the list of waiters for the same host; its Value is the waiter
	lease Lease[T]
	err   error
	ended chan struct{} // closed when it has a lease or an error
}

// blocked holds the waiters, guarded by the mutex of the Scheduler.
//
// A call that makes a host ready ends with changed, which passes the lease to a waiter under the
// same lock. So does the timer, which is set for the next event while there are waiters. So a host
// that becomes ready wakes one goroutine, no wake-up is lost, and no waiter overtakes another.
type blocked[T any] struct {
	of    map[uint32]*list.List // by host, in the order of arrival; of 0 those that take any host
	timer *time.Timer           // calls tick
	armed int64                 // the time it is set for; never if it is stopped

	stalled bool  // a call waits although there is something to do
	since   int64 // when that began
	waits   int64 // how often that began
	waited  int64 // for how long in total
}

// empty reports whether there are no waiters.
func (b *blocked[T]) empty() bool { return len(b.of) == 0 }

// next and wait report whether there are calls of Next and of Wait.
func (b *blocked[T]) next() bool { return b.of[0] != nil }
func (b *blocked[T]) wait() bool { return len(b.of) > 1 || len(b.of) == 1 && !b.next() }

// add makes a new waiter.
func (b *blocked[T]) add(host uint32) *waiter[T] {
	w := &waiter[T]{host: host, ended: make(chan struct{})}
	if b.of[host] == nil {
		b.of[host] = list.New()
	}
	w.at = b.of[host].PushBack(w)
	return w
}

// first returns the waiter that has waited longest.
func (b *blocked[T]) first(host uint32) *waiter[T] {
	return b.of[host].Front().Value.(*waiter[T])
}

// remove is the inverse of add.
func (b *blocked[T]) remove(w *waiter[T]) {
	if b.of[w.host].Remove(w.at); b.of[w.host].Len() == 0 {
		delete(b.of, w.host)
	}
}

// note updates the statistics of waiting.
func (b *blocked[T]) note(now int64, queued int) {
	stalled := b.next() && queued > 0 || b.wait()
	if b.stalled {
		b.waited += now - b.since
	}
	if stalled && !b.stalled {
		b.waits++
	}
	b.stalled, b.since = stalled, now
}

// Next waits until a host is ready and returns a lease on it. It returns [ErrDrained] if no task is
// left to wait for, and the error and the cause of ctx if ctx ends first.
//
// Any number of goroutines may wait in Next; a task that becomes ready wakes one of them. A call
// that does not wait does not allocate, provided the lease does not escape from the caller.
func (s *Scheduler[T]) Next(ctx context.Context) (*Lease[T], error) {
	return s.nextLease(ctx, new(Lease[T])) // inlined: the Lease may be a local of the caller
}

func (s *Scheduler[T]) nextLease(ctx context.Context, lease *Lease[T]) (*Lease[T], error) {
	if err := cause.Of(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.goLive()
	if s.take(lease) {
		s.mu.Unlock()
		return lease, nil
	}
	if s.drained() {
		s.mu.Unlock()
		return nil, ErrDrained
	}
	w := s.blocked.add(0)
	s.dispatch()
	s.mu.Unlock()
	return s.await(ctx, w, lease)
}

// Leases returns an iterator that calls Next until nothing is queued or leased. An error, such as
// that of ctx, is yielded once, with a nil Lease, and ends the walk.
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

// Wait waits until a host may be visited and returns a lease without a task. It is for requests
// that need no queue, like golang.org/x/time/rate.Limiter.Wait for events. Callers get the host in
// the order of their calls, before its queued tasks. At its address and in its group, the host also
// comes before hosts that have only tasks. A caller that holds a lease passes the context of that:
// see [Lease.Context].
//
// If ctx has a deadline before which the host cannot be visited, Wait returns a [WaitError] at
// once. It also does if the deadline has passed, or passes during the wait. Otherwise its error is that
// of ctx, or [ErrFull].
func (s *Scheduler[T]) Wait(ctx context.Context, host string) (*Lease[T], error) {
	return s.waitLease(ctx, host, new(Lease[T]))
}

func (s *Scheduler[T]) waitLease(
	ctx context.Context, host string, lease *Lease[T],
) (*Lease[T], error) {
	ended := cause.Of(ctx)
	if ended != nil && ctx.Err() != context.DeadlineExceeded {
		return nil, ended
	}
	s.mu.Lock()
	s.goLive()
	e := &s.engine
	if e.full() {
		s.mu.Unlock()
		return nil, ErrFull
	}
	i := e.use(host)
	if deadline, limited := ctx.Deadline(); ended != nil || limited && e.earliest(i) > s.instant(deadline) {
		// Without joining those who wait: that would end the hold of a group for another host.
		until := s.time(max(e.earliest(i), e.now))
		s.changed()
		s.mu.Unlock()
		yield(ctx, holderKey[T]{s})()
		return nil, &WaitError{host, until, context.Cause(ctx)}
	}
	e.addWaiter(i)
	w := s.blocked.add(i)
	s.changed()
	s.mu.Unlock()
	defer yield(ctx, holderKey[T]{s})() // no other caller gets in between, as this one waits already
	select {
	case <-w.ended:
	default:
		defer yield(ctx, yieldKey{})() // the leases of other Schedulers, whose holder waits now as well
	}
	if err := s.tooLate(ctx, w); err != nil {
		return nil, err
	}
	return s.await(ctx, w, lease)
}

// tooLate returns the error of a waiter whose deadline is known to be too early.
func (s *Scheduler[T]) tooLate(ctx context.Context, w *waiter[T]) error {
	deadline, limited := ctx.Deadline()
	if !limited {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.lease.s != nil || s.engine.earliest(w.host) <= s.instant(deadline) {
		return nil
	}
	s.present()
	return s.giveUp(ctx, w)
}

// WaitError is the error of a call of Wait whose deadline is too early. It wraps
// context.DeadlineExceeded, and the cause of a deadline that has passed. Its methods are safe for
// concurrent use.
type WaitError struct {
	Host  string
	Until time.Time // the host is not leased earlier, as far as is known; zero if it never is

	cause error // of the context's end
}

// Error says which host may not be visited, and when it may.
func (e *WaitError) Error() string {
	if e.Until.IsZero() {
		return "scheduler: " + e.Host + " is paused forever, by what it asked for or what was set for it"
	}
	return fmt.Sprintf("scheduler: %s may not be visited before %s, which is too late",
		e.Host, e.Until.Format(time.RFC3339))
}

// Unwrap returns context.DeadlineExceeded and the cause.
func (e *WaitError) Unwrap() []error {
	if e.cause == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.cause}
}

// Timeout returns true. An http.Client asks the error itself, not those that it wraps.
func (e *WaitError) Timeout() bool { return true }

// Temporary returns true.
func (e *WaitError) Temporary() bool { return true }

// Local returns true. It tells the layers above that the host has not failed: it was not asked.
func (e *WaitError) Local() bool { return true }

// await waits for a waiter to get a lease or an error.
func (s *Scheduler[T]) await(
	ctx context.Context, w *waiter[T], lease *Lease[T],
) (*Lease[T], error) {
	select {
	case <-w.ended:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.err == nil && w.lease.s == nil {
			s.present()
			return nil, s.giveUp(ctx, w)
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	*lease = w.lease
	return lease, nil
}

// giveUp removes a waiter whose context has ended, or will have too early, and returns its error. It
// requires that s.mu is held.
func (s *Scheduler[T]) giveUp(ctx context.Context, w *waiter[T]) error {
	e, err := &s.engine, cause.Of(ctx)
	s.blocked.remove(w)
	if w.host != 0 {
		if err == nil || ctx.Err() == context.DeadlineExceeded {
			until := max(e.earliest(w.host), e.now)
			err = &WaitError{e.name(w.host), s.time(until), context.Cause(ctx)}
		}
		e.removeWaiter(w.host)
		e.sweep()
	}
	s.dispatch()
	return err
}

// changed must follow everything that may make a host ready, leave nothing to wait for, or enter new
// limiters. It requires that s.mu is held.
func (s *Scheduler[T]) changed() {
	if s.engine.entered {
		s.engine.sweep()
	}
	if !s.blocked.empty() {
		s.dispatch()
	}
}

// dispatch gives the ready hosts to the waiters, and sets the timer. It requires that s.mu is held
// and that the engine is at the present.
func (s *Scheduler[T]) dispatch() {
	b := &s.blocked
	for !b.empty() {
		level := uint8(waitLevel)
		if b.next() {
			level = 0
		}
		n := s.engine.next(level)
		if n == 0 {
			break
		}
		s.wake(n)
	}
	for b.next() && s.drained() {
		w := b.first(0)
		b.remove(w)
		w.err = ErrDrained
		close(w.ended)
	}
	b.note(s.engine.now, s.queued)
	s.arm()
}

// wake gives a new flight to the waiter that it is for. It requires that s.mu is held.
func (s *Scheduler[T]) wake(n uint32) {
	host := uint32(0)
	if f := s.engine.flights.at(n); f.task == 0 {
		host = f.limiters[theHost]
	}
	w := s.blocked.first(host)
	s.blocked.remove(w)
	s.fill(&w.lease, n)
	close(w.ended)
}

// drained reports whether Next would wait forever, because no event is left that could make a task
// ready. A lease could, as its holder may add tasks, and so could a call of Wait, which gets one.
// It requires that s.mu is held.
func (s *Scheduler[T]) drained() bool {
	return s.queued == 0 && s.leased == 0 && s.producers == 0 && !s.blocked.wait()
}

// arm sets the timer for the next event, if there are waiters. It requires that s.mu is held.
func (s *Scheduler[T]) arm() {
	b := &s.blocked
	at := int64(never)
	if !b.empty() {
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
	s.present()
	s.dispatch()
}
