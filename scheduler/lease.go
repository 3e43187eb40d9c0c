package scheduler

import "time"

// Lease is the right to visit a host once, now. Until it is given back no other lease is given on
// that host, nor on that address. Its methods are safe for concurrent use.
type Lease[T any] struct {
	s    *Scheduler[T]
	task Task[T]
	host uint32
	addr uint32 // 0 if unknown
	at   int64  // when it was given, on the clock that never goes back
	done bool   // guarded by s.mu
}

// Outcome says how a lease was used. The zero Outcome is that of a visit at the time of the lease,
// of which the latency is not known.
type Outcome struct {
	// Start is when the visit started: the delays count from here. The strictest choice is the
	// arrival of the first byte of the response, since by then the server has certainly seen the
	// request. A Start before the lease was given, such as zero, means when it was given.
	Start time.Time

	// Took is the latency of the host, for Options.LatencyFactor.
	Took time.Duration

	// Skipped says that no request was made, so that no delay is charged; the rest is ignored.
	Skipped bool
}

// Task returns the task that is to be done, as it was added: with the same time, though perhaps in
// another time zone, and with an Addr that is not mapped into IPv6.
func (l *Lease[T]) Task() Task[T] { return l.task }

// Host returns the host of the task.
func (l *Lease[T]) Host() string { return l.task.Host }

// Item returns the item of the task.
func (l *Lease[T]) Item() T { return l.task.Item }

// Done gives the lease back and starts the delays of its host and its address. Only the first call
// counts.
func (l *Lease[T]) Done(o Outcome) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.done {
		return
	}
	// From here on the numbers of host and address may come to stand for others.
	l.done = true
	s.leased--
	if !o.Skipped {
		s.book.charge(l.host, l.addr, max(s.instant(o.Start), l.at), o.Took)
	}
	s.book.release(l.host, l.addr)
	s.alert()
}
