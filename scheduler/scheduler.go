package scheduler

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"
)

// The zero [Options] stands for the defaults. Forever is the wait that [Scheduler.TryNext] reports
// when only another call can make a task ready. MaxPriority is the highest priority of a task.
const (
	DefaultHostDelay     = 5 * time.Second
	DefaultLatencyFactor = 5
	DefaultBackoff       = 30 * time.Second
	DefaultMaxBackoff    = time.Hour
	DefaultMaxRetryAfter = 24 * time.Hour
	DefaultLeaseTimeout  = 10 * time.Minute
	DefaultMaxQueue      = 1_000_000
	DefaultMaxIdleHosts  = 1_000_000

	Forever     = time.Duration(math.MaxInt64)
	MaxPriority = priorities - 1
)

var (
	// ErrFull is returned by Add when as many tasks are queued as Options allow.
	ErrFull = errors.New("scheduler: queue is full")

	// ErrHostFull is the ErrFull of a single host, its address or its group, by
	// Options.MaxHostQueue, MaxAddrQueue or MaxGroupQueue. It wraps ErrFull.
	ErrHostFull = fmt.Errorf("%w for this host, its address or its group", ErrFull)

	// ErrDrained is returned by Next when nothing is queued or leased and no producer is
	// registered: no task can become ready.
	ErrDrained = errors.New("scheduler: drained")
)

// Task is one thing to do at a host.
type Task[T any] struct {
	Host string // names the queue of the task; compared byte by byte

	// Priority of the task, up to MaxPriority. Tasks of higher priority come first at their host.
	// Of the ready hosts, those whose next task has the higher priority come first. Hosts of one
	// address or group take turns, whatever their priorities.
	Priority uint8

	// NotBefore is the earliest time of the lease. Until then, the task does not delay others. The
	// zero time means now.
	NotBefore time.Time

	Item T // the caller's own
}

// Host is what the caller knows about a host.
type Host struct {
	Addr  netip.Addr // its address; IPv4 addresses mapped into IPv6 count as IPv4
	Group string     // what else should not be visited too often: a domain, a network, a customer

	// Delay is the minimum delay between two leases that the operator wants, and CrawlDelay that
	// which the site asks for. They are kept apart, and the longer one applies. A value up to
	// Options.HostDelay, such as -1, cancels an earlier one. A CrawlDelay counts as at most a day,
	// after which its robots.txt is out of date.
	Delay, CrawlDelay time.Duration
}

// Scheduler queues tasks and leases them such that no host and no address is visited too often. Its
// methods are safe for concurrent use.
type Scheduler[T any] struct {
	epoch time.Time // times are kept as nanoseconds since then
	opts  Options   // without zeros

	mu        sync.Mutex
	live      bool // time is that of the computer, see present
	engine    engine
	items     slab[T] // by the numbers of their tasks in the engine
	queued    int
	leased    int
	producers int
	blocked   blocked[T]
}

// New returns an empty Scheduler.
func New[T any](o Options) *Scheduler[T] {
	o = o.normal()
	s := &Scheduler[T]{epoch: time.Now(), opts: o}
	s.blocked = blocked[T]{of: map[uint32]*list.List{}, armed: never}
	s.engine.init(o, seedOf(s.epoch))
	s.engine.dropped = func(t uint32) {
		s.leased--
		s.releaseTask(t)
	}
	return s
}

// seedOf makes the pauses of Schedulers differ. Tests replace it.
var seedOf = func(epoch time.Time) uint64 { return uint64(epoch.UnixNano()) }

// Add queues t behind the other tasks of its host and priority. If no more tasks may be queued, it
// returns [ErrFull], or an error that wraps it, and changes nothing. It never waits.
func (s *Scheduler[T]) Add(t Task[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present()
	e := &s.engine
	if s.queued >= s.opts.MaxQueue || e.full() {
		return ErrFull
	}
	host := e.use(t.Host)
	if !e.admits(host) {
		s.changed()
		return ErrHostFull
	}
	s.queued++
	i := e.add(host, min(t.Priority, MaxPriority), s.instant(t.NotBefore))
	for s.items.used <= i {
		s.items.alloc()
	}
	*s.items.at(i) = t.Item
	s.changed()
	return nil
}

// Withdraw removes the tasks of a host and returns them in the order in which they would have been
// leased: for a host that is not to be visited for long, so that its tasks do not occupy the queue.
// Tasks whose NotBefore lies ahead stay, and leases stay valid. It takes time in proportion to the
// number of tasks.
func (s *Scheduler[T]) Withdraw(host string) (tasks []Task[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present()
	i := s.engine.lookup(aHost, host)
	if i == 0 {
		return nil
	}
	s.engine.withdraw(i, func(t uint32) {
		priority := s.engine.tasks.at(t).priority
		tasks = append(tasks, Task[T]{Host: host, Priority: priority, Item: *s.items.at(t)})
		s.releaseTask(t)
	})
	s.queued -= len(tasks)
	s.changed()
	return tasks
}

// SetHost sets what is known about a host. Zero fields of h leave earlier settings unchanged. The
// change also applies to queued tasks and to the current delay. A longer delay counts from the last
// visit even if the shorter one has passed, as long as tasks are queued, or for another minute.
//
// A host with an empty queue is forgotten a day after its last use, or after its delay if that is
// longer. So call SetHost again when the host is used again, for example whenever the crawler
// resolves its name or reads its robots.txt. The error is [ErrFull] if there is no room for it.
func (s *Scheduler[T]) SetHost(host string, h Host) error {
	known := h.Addr.IsValid()
	h.Addr = s.address(h.Addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present()
	if s.engine.full() {
		return ErrFull
	}
	s.engine.setHost(host, h, known)
	s.changed()
	return nil
}

// address returns the address that limits a host at ip: none if ip is exempt.
func (s *Scheduler[T]) address(ip netip.Addr) netip.Addr {
	ip = ip.Unmap()
	if ip.IsValid() && s.opts.Exempt != nil && s.opts.Exempt(ip) {
		return netip.Addr{}
	}
	return ip
}

// TryNext returns the lease on a host that is ready at now, if there is one. Otherwise it returns
// nil and how long it takes until some host may be ready, unless another call makes one ready
// earlier; [Forever] means that only another call can.
//
// Simulations and event loops call it with their own times. All times given to a Scheduler must
// come from one clock and lie within 290 years of New. A now before the latest one counts as the
// latest. Calls without a time, such as Done and SetHost, act at the latest time given, so an event
// loop calls TryNext first when it wakes up. Once Next, Leases or Wait is called, they act when they
// are called.
func (s *Scheduler[T]) TryNext(now time.Time) (*Lease[T], time.Duration) {
	return s.tryNext(now, new(Lease[T])) // inlined, so that the Lease may be a local of the caller
}

// tryNext is TryNext, with the memory for the lease.
func (s *Scheduler[T]) tryNext(now time.Time, lease *Lease[T]) (*Lease[T], time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present()
	s.engine.advance(s.instant(now))
	if s.take(lease) {
		return lease, 0
	}
	return nil, between(s.engine.now, s.engine.soonest())
}

// take leases a host that is ready now. It requires that s.mu is held.
func (s *Scheduler[T]) take(lease *Lease[T]) bool {
	s.changed() // waiting callers come first
	for {
		n := s.engine.next(0)
		if n == 0 {
			return false
		}
		if s.engine.flights.at(n).task != 0 {
			s.fill(lease, n)
			if !s.blocked.empty() {
				s.arm() // for the timeout of the lease
			}
			return true
		}
		s.wake(n) // the lease of a caller of Wait is never given to another caller
		s.dispatch()
	}
}

// fill turns a new flight into a lease. It requires that s.mu is held.
func (s *Scheduler[T]) fill(lease *Lease[T], n uint32) {
	f := s.engine.flights.at(n)
	*lease = Lease[T]{s: s, flight: n, serial: f.serial, task: s.taskOf(f)}
	s.leased++
	if f.task != 0 {
		s.queued--
	}
}

// taskOf returns the task of a flight. It requires that s.mu is held.
func (s *Scheduler[T]) taskOf(f *flight) Task[T] {
	t := Task[T]{Host: s.engine.name(f.limiters[theHost])}
	if f.task != 0 {
		t.Priority, t.Item = s.engine.tasks.at(f.task).priority, *s.items.at(f.task)
	}
	return t
}

// releaseTask frees the slot of a task. It requires that s.mu is held.
func (s *Scheduler[T]) releaseTask(t uint32) {
	if t == 0 {
		return
	}
	var zero T
	*s.items.at(t) = zero // so that the garbage collector can free the item
	s.engine.tasks.release(t)
}

// Producer announces that more tasks will be added: until done is called, Next waits instead of
// returning [ErrDrained]. Call it before starting goroutines that add tasks, such as resolvers. A
// second call of done does nothing.
func (s *Scheduler[T]) Producer() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.producers++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.present()
		s.producers--
		s.changed()
	})
}

// present advances the engine to the present. Every call that acts on it begins so, and what it does
// then happens at engine.now: when a host is used, when a visit ends, whether an address is open.
//
// Which clock tells the present follows from the calls. Next and Wait wait on that of the computer,
// and make the Scheduler live. Until then TryNext and Restore may have times of their own, and the
// latest of those is the present. It requires that s.mu is held.
func (s *Scheduler[T]) present() {
	if s.live {
		s.engine.advance(int64(time.Since(s.epoch))) // reads one clock; time.Now reads two
	}
}

// goLive is present for a call that waits.
func (s *Scheduler[T]) goLive() {
	s.live = true
	s.present()
}

// instant returns t in the units of the engine. Sub saturates, so the zero time becomes longAgo. If
// both times have a monotonic reading, as those of time.Now do, changes of the system clock have no
// effect.
func (s *Scheduler[T]) instant(t time.Time) int64 {
	if t.IsZero() {
		return longAgo // what Sub would return, but faster
	}
	return int64(t.Sub(s.epoch))
}

// time is the inverse of instant. The zero time stands for both longAgo and never.
func (s *Scheduler[T]) time(at int64) time.Time {
	if at == longAgo || at == never {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(at))
}
