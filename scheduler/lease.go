package scheduler

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Lease permits one request to a host, now. It is outstanding until [Lease.Done] or
// [Lease.Requeue], and counts towards the limits of its host, address and group. After that, or
// after Options.LeaseTimeout, its methods have no effect. A copy of a Lease is the same lease. Its
// methods are safe for concurrent use.
type Lease[T any] struct {
	s      *Scheduler[T]
	flight uint32
	serial uint64 // the number of the flight may be reused
	task   Task[T]
}

// Outcome is the result of a request. The zero Outcome is a successful request at the time of the
// lease, with unknown latency.
type Outcome struct {
	// Start is when the request reached the server; delays count from then. The arrival of the
	// first byte of the response is a safe upper bound. A Start before the lease, such as the zero
	// time, means the time of the lease, or that of [Lease.Arrived]. A Start more than a day ahead
	// is reduced to a day.
	Start time.Time

	// Took is the latency of the server, for Options.LatencyFactor, which bounds its effect.
	Took time.Duration

	// Status is the status code of the response, 0 if unknown. 429 and 503 are failures.
	Status int

	// Failed reports that there was no response, or an incomplete one. It is a failure.
	Failed bool

	// RetryAfter is the time given by the Retry-After header, such as the time of the response plus
	// its seconds. The host is not leased before, nor for a while is its address: see
	// Options.MaxRetryAfter. Zero means that there is none.
	RetryAfter time.Time

	// Unknown reports that a request may have reached the server, but nothing is known of its end, as when its
	// caller has left: the delay starts, and Failed, Status and Took are ignored. What is counted of failures
	// and latencies stays.
	Unknown bool

	// Skipped reports that no request was made: no delay starts, and the other fields are ignored.
	Skipped bool
}

// Package net/http has these two, but would add 2 MB to a program that does not use it.
const (
	tooManyRequests    = 429
	serviceUnavailable = 503
)

// Task returns the leased task, without its NotBefore. Its Host is a substring of about 16 KiB of
// text; clone it if you keep it.
func (l *Lease[T]) Task() Task[T] { return l.task }

// Host returns the host of the task.
func (l *Lease[T]) Host() string { return l.task.Host }

// Item returns the item of the task.
func (l *Lease[T]) Item() T { return l.task.Item }

// Done ends the lease and starts the delays of its host, address and group.
func (l *Lease[T]) Done(o Outcome) { l.giveBack(o, false, time.Time{}) }

// Requeue is Done, and also enqueues the task again, behind the others of its host and priority.
// notBefore is the earliest time of its next lease, and may be zero. Requeue works even if the
// queue is full, but not once the lease is lost, and its task with it: see Stats.Lost.
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
		e.touch(host)
		e.queue(host, t, s.instant(notBefore))
	} else {
		s.releaseTask(t)
	}
	e.release(l.flight, report{
		skipped: o.Skipped, unknown: o.Unknown, took: o.Took,
		failed: o.Failed || o.Status == tooManyRequests || o.Status == serviceUnavailable,
		start:  s.instant(o.Start), retry: s.instant(o.RetryAfter),
	})
	s.changed()
}

// lock locks the mutex of the Scheduler at the present, and reports whether the lease is still
// outstanding. If not, the mutex is not locked.
func (l *Lease[T]) lock() bool {
	if l.s == nil {
		return false
	}
	l.s.mu.Lock()
	l.s.present()
	if l.s.engine.flights.at(l.flight).serial != l.serial {
		l.s.changed()
		l.s.mu.Unlock()
		return false
	}
	return true
}

// Context returns a copy of a context that carries the lease, for requests on the way to that of
// the task, such as for robots.txt. Under it, each request has to wait for its turn with
// [Scheduler.Wait], and the last one with that for the task as well: the first call gives back
// the turn of the lease, so that no caller waits for what it holds itself, nor two for each other. So does
// package robots, before one caller waits for the robots.txt that another one fetches. What remains is
// the task: [Lease.Held] is false, and Done and Requeue ignore the outcome. Options.LeaseTimeout stops
// during such a wait, and starts again after it. A caller that holds several leases, of one
// Scheduler or of several, makes the context of one from that of another.
func (l *Lease[T]) Context(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, holderKey[T]{l.s}, l.yield(ctx, holderKey[T]{l.s}))
	return context.WithValue(ctx, yieldKey{}, l.yield(ctx, yieldKey{}))
}

// yield returns a function that gives back the turn of the lease, and of those that a context has under
// a key, while their holder waits.
func (l *Lease[T]) yield(ctx context.Context, key any) func() (resume func()) {
	return func() (resume func()) {
		again := yield(ctx, key)
		if !l.lock() {
			return again
		}
		defer l.s.mu.Unlock()
		l.s.engine.spend(l.flight)
		l.s.changed()
		return sync.OnceFunc(func() { // layers of other modules call it
			again()
			l.waited()
		})
	}
}

// waited is called when the holder no longer waits.
func (l *Lease[T]) waited() {
	if l.lock() { // it is still outstanding
		defer l.s.mu.Unlock()
		l.s.engine.waited(l.flight)
		l.s.changed()
	}
}

// yieldKey is the key of a func() (resume func()), which a layer calls before a request waits for
// that of another caller. It is that of internal/httpctx, which imports too much to be imported here.
type yieldKey = struct{ Yield struct{} }

// holderKey is the key of another one, for the leases of one Scheduler alone: a call of Wait there gives
// these back even if it need not wait.
type holderKey[T any] struct{ s *Scheduler[T] }

// yield gives back the turns of the leases that a context carries under a key, while their holder waits
// for others.
func yield(ctx context.Context, key any) (resume func()) {
	if all, ok := ctx.Value(key).(func() (resume func())); ok {
		return all()
	}
	return func() {}
}

// Held reports whether a request may be sent under the lease now. Ask before a request that was
// prepared for long, such as by connecting to a slow server: another caller may have a lease
// already.
func (l *Lease[T]) Held() bool {
	if !l.lock() {
		return false
	}
	defer l.s.mu.Unlock()
	l.s.changed()
	return !l.s.engine.flights.at(l.flight).spent
}

// Reach sets the address of the host, as [Scheduler.SetHost] does, once the caller knows where the
// request will go. It reports whether the address may be visited now. If not, send no request and
// call Done with Skipped: the next lease on the host waits for the address. If the host has waited for
// another one, that lease still does, and only the lease after it waits for this one, or the third one
// after it if there are several: name servers rotate addresses, and the host would be last in one line
// after the other.
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

// Arrived sets the time when the request reaches the server. Delays count from then, or from
// [Outcome].Start if that is later. If Options allow several leases at a time, the next one need
// not wait for Done.
//
// Call it at the first byte of the response, or earlier if the time that a request takes to arrive
// has a known bound. If that bound is too low, the next request may come too early by the
// difference.
func (l *Lease[T]) Arrived(at time.Time) {
	if !l.lock() {
		return
	}
	defer l.s.mu.Unlock()
	l.s.engine.arrived(l.flight, l.s.instant(at))
	l.s.changed()
}
