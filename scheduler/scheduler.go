package scheduler

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"sync"
	"time"
)

// Defaults that the zero [Options] stands for.
const (
	DefaultHostDelay     = 5 * time.Second
	DefaultLatencyFactor = 5
	DefaultMaxQueue      = 1_000_000
)

// Forever is the wait that [Scheduler.TryNext] reports when no passing of time can make a task
// ready, only another call.
const Forever = time.Duration(math.MaxInt64)

var (
	// ErrFull is returned by Add when as many tasks are queued as Options.MaxQueue allows.
	ErrFull = errors.New("scheduler: queue is full")

	// ErrDrained is returned by Next when nothing is queued, nothing is leased and no producer is
	// registered, so that waiting would be in vain.
	ErrDrained = errors.New("scheduler: drained")
)

// Options sets how polite a [Scheduler] is and how much it holds. The zero Options suits a crawler
// that visits servers it knows nothing about.
type Options struct {
	// HostDelay is the least time between the starts of two leases on a host.
	// 0 means DefaultHostDelay, negative means none.
	HostDelay time.Duration

	// AddrDelay is the same for an address, whichever hosts live there.
	// 0 means as long as HostDelay, negative means none.
	AddrDelay time.Duration

	// LatencyFactor times the latency of a host's last lease is the least delay before its next
	// one, so that a server that struggles is left in peace.
	// 0 means DefaultLatencyFactor, negative means that latency does not count.
	LatencyFactor float64

	// MaxQueue bounds the tasks that are queued; leased ones do not count.
	// 0 means DefaultMaxQueue, negative means as many as can be numbered, about 2e9.
	MaxQueue int
}

// Task is one thing to do at a host.
type Task[T any] struct {
	// Host names the queue of the task. It is compared byte by byte.
	Host string

	// Addr is where the request will go. An IPv4 address mapped into IPv6 counts as the IPv4 one.
	// The invalid address stands for an unknown one: then only the host's delay holds.
	Addr netip.Addr

	// NotBefore is the earliest time of the lease; zero means at once. As tasks of a host keep
	// their order, it holds up those behind it too.
	NotBefore time.Time

	// Item is the caller's own.
	Item T
}

// Scheduler hands out tasks so that no host and no address is visited too often. Its methods are
// safe for concurrent use.
type Scheduler[T any] struct {
	epoch time.Time // times are kept as nanoseconds since then
	limit int       // tasks queued at most

	mu        sync.Mutex
	book      book
	tasks     slab[entry[T]]
	queued    int
	leased    int
	producers int
	given     int64
	sleep     sleep

	// baton is in the channel or with the one Next that sleeps until the next due time. The others
	// queue up for it, so that a task that gets ready wakes one of them, not all.
	baton chan struct{}
}

// entry is a queued task: what the book needs to know about it, and what the caller put in.
type entry[T any] struct {
	task
	item T
}

// New returns a Scheduler that holds nothing.
func New[T any](opts Options) *Scheduler[T] {
	opts = opts.normal()
	s := &Scheduler[T]{
		epoch: time.Now(),
		limit: opts.MaxQueue,
		sleep: sleep{kick: make(chan struct{}, 1)},
		baton: make(chan struct{}, 1),
	}
	s.baton <- struct{}{}
	s.book.init(opts, func(i uint32) *task { return &s.tasks.at(i).task })
	return s
}

// normal returns o with defaults in place of zeros and zeros in place of what is off.
func (o Options) normal() Options {
	if o.HostDelay == 0 {
		o.HostDelay = DefaultHostDelay
	}
	if o.AddrDelay == 0 {
		o.AddrDelay = o.HostDelay
	}
	if o.LatencyFactor == 0 {
		o.LatencyFactor = DefaultLatencyFactor
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = DefaultMaxQueue
	}
	// Tasks have numbers of 32 bits.
	if o.MaxQueue < 0 {
		o.MaxQueue = math.MaxInt32
	}
	o.HostDelay = max(o.HostDelay, 0)
	o.AddrDelay = max(o.AddrDelay, 0)
	o.LatencyFactor = max(o.LatencyFactor, 0)
	o.MaxQueue = min(o.MaxQueue, math.MaxInt32)
	return o
}

// Add queues t behind the other tasks of its host. It returns [ErrFull], and leaves everything as
// it was, if no more tasks may be queued. It never waits.
func (s *Scheduler[T]) Add(t Task[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued >= s.limit {
		return ErrFull
	}
	s.queued++
	i := s.tasks.alloc()
	s.tasks.at(i).item = t.Item
	s.book.add(t.Host, t.Addr, s.instant(t.NotBefore), i)
	s.alert()
	return nil
}

// Next waits until some host is ready and returns the lease on it. Meanwhile tasks may be added
// and leases given back by others. It returns [ErrDrained] when there is nothing to wait for, and
// ctx's error when ctx ends first.
//
// Any number of goroutines may wait in Next. A task that gets ready wakes one of them.
func (s *Scheduler[T]) Next(ctx context.Context) (*Lease[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lease, err := s.poll(time.Now()); lease != nil || err != nil {
		return lease, err
	}
	select {
	case <-s.baton:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.baton <- struct{}{} }()
	for {
		lease, wait, err := s.pollOrSleep(time.Now())
		if lease != nil || err != nil {
			return lease, err
		}
		if err := s.sleep.wait(ctx, wait); err != nil {
			s.giveUp(time.Now())
			return nil, err
		}
	}
}

// TryNext returns the lease on a host that is ready at now, if there is one. Otherwise it returns
// nil and how long it takes until some host may be ready, unless another call makes one ready
// earlier; [Forever] says that only another call can.
//
// Simulations and event loops call it with times of their own. All times that a Scheduler is given
// must come from one clock, and lie within 290 years of New. A now earlier than the latest one seen
// counts as that one.
func (s *Scheduler[T]) TryNext(now time.Time) (*Lease[T], time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(now)
}

// Producer announces that tasks are still to come: until done is called, Next does not return
// [ErrDrained] but waits. Seeders and resolvers call it before they start. A second call of done
// does nothing.
func (s *Scheduler[T]) Producer() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.producers++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.producers--
		s.alert()
	})
}

// SetDelay makes d the least delay of one host, counted from its last lease if that is not yet
// forgotten; a robots.txt may ask for it. It replaces the d of an earlier call and slows no other
// host, not even on the same address. It never makes the delay shorter than Options say: a d up to
// HostDelay just undoes earlier calls. A host with a longer d is remembered until then.
func (s *Scheduler[T]) SetDelay(host string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.setDelay(host, int64(d))
	s.alert()
}

// Stats is what a [Scheduler] holds and has done, as of the latest time it was told. Hosts is the
// sum of Idle, Waiting, Ready and Leased.
type Stats struct {
	Queued int // tasks that were added and not yet leased
	Hosts  int // that are known: busy ones, those whose delay runs, those with a delay of their own
	Addrs  int // that are known: those of tasks and leases, and those whose delay runs

	Idle    int // hosts with nothing queued
	Waiting int // hosts with tasks that wait for their time, or for their address
	Ready   int // hosts that could be leased at once; one that SetDelay puts off may count a while
	Leased  int // hosts that are leased

	Given int64 // leases given so far

	// How often some Next had to wait although tasks were queued, and how long in all: the price of
	// politeness. Callers who wait at the same time count once.
	Waits  int64
	Waited time.Duration
}

// Stats returns the present figures in constant time.
func (s *Scheduler[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Queued: s.queued,
		Addrs:  len(s.book.addrIDs),
		Ready:  s.book.ready.len(),
		Given:  s.given,
		Waits:  s.sleep.waits,
		Waited: time.Duration(s.sleep.waited),
	}
	s.book.count(&st)
	return st
}

// take is TryNext. The lease gets a copy of all it needs, so that the places of the task, and later
// those of the host and the address, can be used again. It requires that s.mu is held.
func (s *Scheduler[T]) take(now time.Time) (*Lease[T], time.Duration) {
	h := s.book.next(s.instant(now))
	if h == 0 {
		return nil, s.book.wait()
	}
	i := s.book.pop(h)
	e := s.tasks.at(i)
	lease := &Lease[T]{s: s, host: h, addr: e.addr, at: s.book.now}
	lease.task.Host, lease.task.Addr = s.book.names(h, e.addr)
	lease.task.NotBefore, lease.task.Item = s.time(e.notBefore), e.item
	s.tasks.release(i)
	s.queued--
	s.leased++
	s.given++
	return lease, 0
}

// drained tells whether no event is left that could make a task ready. A lease is one, as who holds
// it may add what it finds. It requires that s.mu is held.
func (s *Scheduler[T]) drained() bool {
	return s.queued == 0 && s.leased == 0 && s.producers == 0
}

// instant returns t as the book counts time. Sub stops at the longest Duration, which makes longAgo
// of the zero time. Where both times carry a monotonic reading, as those of time.Now do, setting
// the clock of the machine changes nothing.
func (s *Scheduler[T]) instant(t time.Time) int64 { return int64(t.Sub(s.epoch)) }

// time is the inverse of instant.
func (s *Scheduler[T]) time(at int64) time.Time {
	if at == longAgo {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(at))
}
