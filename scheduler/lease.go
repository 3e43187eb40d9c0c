package scheduler

import (
	"iter"
	"net/netip"
	"time"
)

// Lease is the right to visit a host once, now. Until it is given back with [Lease.Done] or
// [Lease.Requeue] it counts against what may be out on its host, its address and its group. A lease
// that is given back, or was lost by Options.LeaseTimeout, has no effect any longer. A copy of a
// Lease is the same lease. Its methods are safe for concurrent use.
type Lease[T any] struct {
	s      *Scheduler[T]
	flight uint32
	serial uint64 // as the number of the flight may come to stand for another one
	task   Task[T]
}

// Outcome says how a lease was used. The zero Outcome is that of a visit at the time of the lease
// that went well, of which the latency is not known.
type Outcome struct {
	// Start is when the request reached the server: the delays count from here. When the first byte
	// of the response arrives, the request has certainly arrived. A Start before the lease was
	// given, such as zero, means when it was given, or the time of [Lease.Arrived].
	Start time.Time

	// Took is the latency of the server, for Options.LatencyFactor.
	Took time.Duration

	// Status is that of the response; 0 if it does not matter. 429 and 503 are failures.
	Status int

	// Failed says that there was no response, or not all of it: a failure.
	Failed bool

	// RetryAfter is when the server says to come back, such as the time of the response plus the
	// seconds of its Retry-After header. Neither its host nor its address is leased before. Zero if
	// it does not say.
	RetryAfter time.Time

	// Skipped says that no request was made, so that no delay is charged; the rest is ignored.
	Skipped bool
}

// These two are not worth net/http, which would add 2 MB to a program that does without.
const (
	tooManyRequests    = 429
	serviceUnavailable = 503
)

// Task returns the task that is to be done, without its NotBefore. Its Host is a part of a text of
// some 16 KiB, which it keeps in memory.
func (l *Lease[T]) Task() Task[T] { return l.task }

// Host returns the host of the task.
func (l *Lease[T]) Host() string { return l.task.Host }

// Item returns the item of the task.
func (l *Lease[T]) Item() T { return l.task.Item }

// Done gives the lease back and starts the delays of its host, its address and its group.
func (l *Lease[T]) Done(o Outcome) { l.giveBack(o, false, time.Time{}) }

// Requeue is Done, and queues the task again, behind the others of its host and priority. It is not
// leased before a time, which may be zero. This works even if the queue is full.
func (l *Lease[T]) Requeue(o Outcome, notBefore time.Time) { l.giveBack(o, true, notBefore) }

func (l *Lease[T]) giveBack(o Outcome, again bool, notBefore time.Time) {
	if !l.lock() {
		return
	}
	s, e := l.s, &l.s.engine
	defer s.mu.Unlock()
	f := e.flights.at(l.flight)
	host, t := f.limiters[theHost], f.task
	s.leased--
	if again && t != 0 {
		s.queued++
		e.queue(host, t, s.instant(notBefore))
	} else {
		s.releaseTask(t)
	}
	e.release(l.flight, report{
		skipped: o.Skipped, took: o.Took,
		failed: o.Failed || o.Status == tooManyRequests || o.Status == serviceUnavailable,
		start:  s.instant(o.Start), retry: s.instant(o.RetryAfter),
	})
	s.changed()
}

// lock locks the mutex of the Scheduler, and reports whether the lease still counts. If not, the
// mutex is not locked.
func (l *Lease[T]) lock() bool {
	if l.s == nil {
		return false
	}
	l.s.mu.Lock()
	if l.s.engine.flights.at(l.flight).serial != l.serial {
		l.s.mu.Unlock()
		return false
	}
	return true
}

// Reach tells to which address the request is about to go, as soon as that is known. The host then
// lives there, as if by [Scheduler.SetHost]. It reports whether the address may be visited now. If
// not, make no request: give the lease back with Skipped, and the next lease on the host waits for
// the address.
func (l *Lease[T]) Reach(addr netip.Addr) (ok bool) {
	if !l.lock() {
		return false
	}
	l.s.mu.Unlock()
	addr = l.s.address(addr) // calls Options.Exempt
	if !l.lock() {
		return false
	}
	defer l.s.mu.Unlock()
	e := &l.s.engine
	if e.full() {
		return true
	}
	ok = e.reach(l.flight, e.useAddr(addr))
	l.s.changed()
	return ok
}

// Arrived tells when the request reaches the server: the delays count from then, or from
// [Outcome].Start if that is later. Where Options allow several leases at a time, it lets the next
// one be given before this one is back.
//
// The first byte of the response proves that the request has arrived. Whoever knows how long a
// request is under way at most can tell earlier: it lets the next one come too early by as much as
// that is wrong.
func (l *Lease[T]) Arrived(at time.Time) {
	if !l.lock() {
		return
	}
	defer l.s.mu.Unlock()
	l.s.engine.arrived(l.flight, l.s.instant(at))
	l.s.changed()
}

// InFlight returns an iterator over the tasks that are leased, with the times of their leases. The
// Scheduler can be used during the walk: what comes or goes meanwhile may be missing.
func (s *Scheduler[T]) InFlight() iter.Seq2[Task[T], time.Time] {
	type leased struct {
		task Task[T]
		at   time.Time
	}
	return func(yield func(Task[T], time.Time) bool) {
		walk(&s.mu, &s.engine.flights, func(l leased) bool { return yield(l.task, l.at) },
			func(i uint32) (leased, bool) {
				f := s.engine.flights.at(i)
				if f.serial == 0 {
					return leased{}, false
				}
				return leased{s.taskOf(f), s.time(f.at)}, true
			})
	}
}
