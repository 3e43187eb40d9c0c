package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"
)

const (
	// Forever is the wait that [Scheduler.TryNext] reports when no passing of time can make a task
	// ready, only another call.
	Forever = time.Duration(math.MaxInt64)

	// MaxPriority is the highest priority of a task.
	MaxPriority = priorities - 1
)

var (
	// ErrFull is returned by Add when as many tasks are queued as Options.MaxQueue allows.
	ErrFull = errors.New("scheduler: queue is full")

	// ErrHostFull is the ErrFull of a single host, by Options.MaxHostQueue.
	ErrHostFull = fmt.Errorf("%w for this host", ErrFull)

	// ErrDrained is returned by Next when nothing is queued, nothing is leased and no producer is
	// registered, so that waiting would be in vain.
	ErrDrained = errors.New("scheduler: drained")

	// ErrClosed is returned by Add and Next after Close.
	ErrClosed = errors.New("scheduler: closed")

	// ErrCorrupt is what the errors of LoadState about its data unwrap to.
	ErrCorrupt = errors.New("scheduler: corrupt state")
)

// Task is one thing to do at a host.
type Task[T any] struct {
	// Host names the queue of the task. It is compared byte by byte.
	Host string

	// Addr is where the request will go. An IPv4 address mapped into IPv6 counts as the IPv4 one.
	// The invalid address stands for an unknown one: then only the host's delay holds.
	Addr netip.Addr

	// Shared says that so many hosts live at Addr that it should not be held against this one, as
	// with a content delivery network: then the address's delay does not hold for this task.
	Shared bool

	// Group names what else should not be visited too often, such as a domain, a network or a
	// customer; "" means none.
	Group string

	// Priority of the task, up to MaxPriority. A host's tasks of higher priority come first; those
	// of the same keep their order. Of hosts that are ready those come first whose next task has
	// the higher priority, but hosts at one address or in one group take turns, and a host that is
	// ready already keeps its turn when a task of higher priority is added.
	Priority uint8

	// NotBefore is the earliest time of the lease; zero means at once. It holds up those behind it
	// too.
	NotBefore time.Time

	// Item is the caller's own.
	Item T
}

// Scheduler hands out tasks so that no host and no address is visited too often. Its methods are
// safe for concurrent use.
type Scheduler[T any] struct {
	epoch     time.Time // times are kept as nanoseconds since then
	limit     int       // tasks queued at most
	hostLimit uint32    // and for one host

	mu        sync.Mutex
	book      book
	items     slab[T] // by the numbers of their tasks in the book
	queued    int
	leased    int
	producers int
	closed    bool
	sleep     sleep

	// baton is in the channel or with the one Next that sleeps until the next due time. The others
	// queue up for it, so that a task that gets ready wakes one of them, not all.
	baton chan struct{}
}

// New returns a Scheduler that holds nothing.
func New[T any](opts Options) *Scheduler[T] {
	opts = opts.normal()
	s := &Scheduler[T]{
		epoch:     time.Now(),
		limit:     opts.MaxQueue,
		hostLimit: uint32(opts.MaxHostQueue),
		sleep:     sleep{kick: make(chan struct{}, 1)},
		baton:     make(chan struct{}, 1),
	}
	s.baton <- struct{}{}
	s.book.init(opts)
	return s
}

// Add queues t behind the other tasks of its host. It returns [ErrFull], and leaves everything as
// it was, if no more tasks may be queued. It never waits.
func (s *Scheduler[T]) Add(t Task[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(&t); err != nil {
		return err
	}
	s.put(&t)
	s.alert()
	return nil
}

// AddBatch is Add for each of the tasks, with less overhead. If some are refused it returns the
// error of the first of them, and all of them in their order, in the front part of tasks, which it
// overwrites for that.
func (s *Scheduler[T]) AddBatch(tasks []Task[T]) (refused []Task[T], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused = tasks[:0]
	for i := range tasks {
		switch e := s.refusal(&tasks[i]); {
		case e == nil:
			s.put(&tasks[i])
		case err == nil:
			err = e
			fallthrough
		default:
			refused = append(refused, tasks[i])
		}
	}
	s.alert()
	return refused, err
}

// refusal returns why a task cannot be added, if it cannot. It requires that s.mu is held.
func (s *Scheduler[T]) refusal(t *Task[T]) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.queued >= s.limit || s.book.full():
		return ErrFull
	}
	if s.hostLimit < math.MaxInt32 {
		host := s.book.lookup(aHost, t.Host)
		if host != 0 && s.book.places.at(host).count >= s.hostLimit {
			return ErrHostFull
		}
	}
	return nil
}

// put queues a task that is not refused. It requires that s.mu is held.
func (s *Scheduler[T]) put(t *Task[T]) {
	s.queued++
	i := s.book.add(order{
		host: t.Host, addr: t.Addr, exempt: t.Shared, group: t.Group,
		priority: min(t.Priority, MaxPriority), notBefore: s.instant(t.NotBefore),
	})
	for s.items.used <= i {
		s.items.alloc()
	}
	*s.items.at(i) = t.Item
}

// Next waits until some host is ready and returns the lease on it. Meanwhile tasks may be added
// and leases given back by others. It returns [ErrDrained] when there is nothing to wait for,
// [ErrClosed] after Close, and ctx's error when ctx ends first.
//
// Any number of goroutines may wait in Next. A task that gets ready wakes one of them. A lease that
// does not leave the function that called Next costs no allocation.
func (s *Scheduler[T]) Next(ctx context.Context) (*Lease[T], error) {
	return s.next(ctx, new(Lease[T])) // inlined, so that the Lease may be a local of the caller
}

// TryNext returns the lease on a host that is ready at now, if there is one. Otherwise it returns
// nil and how long it takes until some host may be ready, unless another call makes one ready
// earlier; [Forever] says that only another call can.
//
// Simulations and event loops call it with times of their own. All times that a Scheduler is given
// must come from one clock, and lie within 290 years of New. A now earlier than the latest one seen
// counts as that one.
func (s *Scheduler[T]) TryNext(now time.Time) (*Lease[T], time.Duration) {
	return s.tryNext(now, new(Lease[T])) // inlined, as in Next
}

// NextBatch waits like Next and then fills leases with as many as there are without waiting, one at
// least. It returns how many. The places of leases may be used again after Done.
func (s *Scheduler[T]) NextBatch(ctx context.Context, leases []Lease[T]) (n int, err error) {
	if len(leases) == 0 {
		return 0, nil
	}
	if _, err := s.next(ctx, &leases[0]); err != nil {
		return 0, err
	}
	n, _ = s.TryNextBatch(time.Now(), leases[1:])
	return n + 1, nil
}

// TryNextBatch fills leases with as many as are ready at now, and returns how many. If none is it
// returns how long to wait, as TryNext does.
func (s *Scheduler[T]) TryNextBatch(now time.Time, leases []Lease[T]) (n int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; n < len(leases); n++ {
		if wait = s.take(now, &leases[n]); wait != 0 {
			break
		}
	}
	if n > 0 {
		wait = 0
	}
	return n, wait
}

// tryNext is TryNext, with room for the lease.
func (s *Scheduler[T]) tryNext(now time.Time, lease *Lease[T]) (*Lease[T], time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := s.take(now, lease); wait != 0 {
		return nil, wait
	}
	return lease, 0
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
// HostDelay just undoes earlier calls, and Options.MaxDelay bounds it. A host with a longer d is
// remembered until it is undone.
func (s *Scheduler[T]) SetDelay(host string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.setDelay(host, int64(d))
	s.alert()
}

// Drain takes all queued tasks of a host back, in their order, so that another scheduler can have
// them. Its leases and its delays stay.
func (s *Scheduler[T]) Drain(host string) []Task[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.book.lookup(aHost, host)
	if h == 0 {
		return nil
	}
	tasks := make([]Task[T], s.book.places.at(h).count)
	for i := range tasks {
		tasks[i] = s.remove(h, s.book.discard(h))
	}
	s.book.resettleHost(h)
	s.book.sweep()
	s.alert()
	return tasks
}

// Close ends all waiting: from now on Add and Next return [ErrClosed], and TryNext finds nothing.
// What is queued stays, for Drain. Leases that are out can be given back and are charged, so that
// AppendState knows of them. A second Close does nothing.
func (s *Scheduler[T]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.alert()
}

// take is TryNext, with 0 for a lease. The lease gets a copy of all it needs, so that the places of
// the task, and later those of the host and the address, can be used again. It requires that s.mu
// is held.
func (s *Scheduler[T]) take(now time.Time, lease *Lease[T]) (wait time.Duration) {
	if s.closed {
		return Forever
	}
	v, t := s.book.next(s.instant(now))
	if v == 0 {
		return s.book.wait()
	}
	visit := s.book.visits.at(v)
	lease.s, lease.visit, lease.serial = s, v, visit.serial
	lease.task = s.remove(visit.host, t)
	s.leased++
	return 0
}

// remove returns a task that has left the queue and makes its place free. It requires that s.mu is
// held.
func (s *Scheduler[T]) remove(host, t uint32) Task[T] {
	e, item := s.book.task(t), s.items.at(t)
	task := Task[T]{
		Host: s.book.name(host), Addr: s.book.ip(e.addrID()), Shared: e.exempt(),
		Group: s.book.name(e.group), Priority: e.priority(),
		NotBefore: s.time(e.notBefore), Item: *item,
	}
	var zero T
	*item = zero // so that it keeps nothing alive
	s.book.tasks.release(t)
	s.queued--
	return task
}

// ended returns why nobody should wait in Next, if so: no event is left that could make a task
// ready. A lease is one, as who holds it may add what it finds. It requires that s.mu is held.
func (s *Scheduler[T]) ended() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.queued == 0 && s.leased == 0 && s.producers == 0:
		return ErrDrained
	default:
		return nil
	}
}

// instant returns t as the book counts time. Sub stops at the longest Duration, which makes longAgo
// of the zero time. Where both times carry a monotonic reading, as those of time.Now do, setting
// the clock of the machine changes nothing.
func (s *Scheduler[T]) instant(t time.Time) int64 {
	if t.IsZero() {
		return longAgo // as Sub would say, but at once
	}
	return int64(t.Sub(s.epoch))
}

// time is the inverse of instant.
func (s *Scheduler[T]) time(at int64) time.Time {
	if at == longAgo {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(at))
}
