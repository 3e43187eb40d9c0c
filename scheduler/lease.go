package scheduler

import (
	"time"
)

// Lease is the right to visit a host once, now. Until it is given back it counts against what may
// be out on its host, its address and its group. A copy of a Lease is the same lease. Its methods
// are safe for concurrent use.
type Lease[T any] struct {
	s      *Scheduler[T]
	visit  uint32
	serial uint64 // as the number of the visit may come to stand for another one
	task   Task[T]
}

// Outcome says how a lease was used. The zero Outcome is that of a visit at the time of the lease
// that went well, of which the latency is not known.
type Outcome struct {
	// Start is when the visit started: the delays count from here. The strictest choice is the
	// arrival of the first byte of the response, since by then the server has certainly seen the
	// request. A Start before the lease was given, such as zero, means when it was given.
	Start time.Time

	// Took is the latency of the host, for Options.LatencyFactor.
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

// failed tells whether the server had rather not been visited.
func (o Outcome) failed() bool {
	return o.Failed || o.Status == tooManyRequests || o.Status == serviceUnavailable
}

// Task returns the task that is to be done, as it was added: with the same time, though perhaps in
// another time zone, and with an Addr that is not mapped into IPv6. Its strings are parts of a text
// of some 16 KiB, which they keep in memory.
func (l *Lease[T]) Task() Task[T] { return l.task }

// Host returns the host of the task.
func (l *Lease[T]) Host() string { return l.task.Host }

// Item returns the item of the task.
func (l *Lease[T]) Item() T { return l.task.Item }

// Done gives the lease back and starts the delays of its host, its address and its group. Only the
// first call counts. On a zero Lease, which is none, it does nothing.
func (l *Lease[T]) Done(o Outcome) {
	s := l.s
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.book.visits.at(l.visit)
	if v.serial != l.serial {
		return
	}
	s.leased--
	s.book.release(l.visit, report{
		skipped: o.Skipped, failed: o.failed(), took: o.Took,
		start: s.instant(o.Start), retry: s.instant(o.RetryAfter),
	})
	s.alert()
}
