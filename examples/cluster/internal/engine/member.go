package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Claim is the ownership of one partition.
type Claim struct {
	message.Dest
	Epoch uint64 // higher than that of any owner before

	// Guard fails as soon as another process may own the partition.
	Guard func() error
	// Quit is closed when the partition should be released in an orderly way.
	Quit <-chan struct{}
}

// A Runner works on a partition until the claim's Quit is closed, and then finishes its current
// work; or until ctx ends, which means that the ownership is lost and nothing may be written.
type Runner func(ctx context.Context, c Claim) error

// Options are the options of a [Member].
type Options struct {
	Name  string                 // begins the member's id; "" means "member"
	TTL   time.Duration          // of the session; 0 means DefaultTTL
	Parts map[message.Module]int // partitions of the modules that it runs; nil means none
	Run   Runner                 // nil means that the member only watches
	// Report describes the member to operators; nil means no description.
	Report func() any
	// Rest is how long the member takes no partitions of a module after one has failed because of
	// this process, such as its disk; 0 means DefaultRest. Other members take them.
	Rest time.Duration
	// Longest is how long a partition may take to finish what it has begun, besides storing it; 0 means not at all.
	Longest time.Duration
	// Failed is told why a partition has ended; nil means that nobody is told. Several goroutines may
	// call it.
	Failed func(c Claim, err error)
}

// DefaultRest is as long as an operator may take to free a disk a little.
const DefaultRest = time.Minute

// A StateError means that the stored state of a partition cannot be read. No process can run the
// partition, and the others continue.
type StateError struct {
	Of  message.Dest
	Err error
}

func (e *StateError) Error() string {
	return fmt.Sprintf("engine: the state of %s cannot be read, so nobody runs this partition: %v", e.Of, e.Err)
}

// Unwrap returns what is wrong with the state.
func (e *StateError) Unwrap() error { return e.Err }

// unreadable marks an error of reading the state of a partition, unless it is about the ownership.
func (k *Keeper) unreadable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || theirs(err) {
		return err
	}
	return &StateError{k.claim.Dest, err}
}

// theirs reports whether an error means that another member has taken over.
func theirs(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrFenced) }

// A Member is one process of a crawl. Its methods are safe for concurrent use.
type Member struct {
	opts  Options
	table *jet.Table
	view  *view

	mu         sync.Mutex
	pulse      *pulse // nil before the first session
	owned      map[string]*ownership
	unreadable map[string]bool              // partitions whose state this process cannot read
	rest       map[message.Module]time.Time // until when no partition of a module is taken

	held    map[string]*hold     // addresses that a partition has a lease of, by key
	entered map[uint64]int       // requests without a lease in flight, by the revision that they heed
	resting map[string]time.Time // when to try again to get an address, by key
}

// An ownership is a partition that this member runs.
type ownership struct {
	claim    Claim
	revision uint64
	leaving  bool // quit was called; under the member's mutex
	quit     func()
	done     chan struct{}
}

// NewMember returns a member that has not started. Leases are stored in table.
func NewMember(table *jet.Table, o Options) *Member {
	o.Name, o.TTL, o.Rest = cmp.Or(o.Name, "member"), cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.Rest, DefaultRest)
	if o.Failed == nil {
		o.Failed = func(Claim, error) {}
	}
	return &Member{opts: o, table: table, view: newView(), owned: map[string]*ownership{},
		unreadable: map[string]bool{}, rest: map[message.Module]time.Time{},
		held: map[string]*hold{}, entered: map[uint64]int{}, resting: map[string]time.Time{}}
}

// Check fails while the member has no valid session.
func (m *Member) Check() error {
	if p := m.current(); p != nil {
		return p.check()
	}
	return ErrLost
}

// current returns the present session, or nil before the first one.
func (m *Member) current() *pulse {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pulse
}

// ID returns the id of the present session; "" before the first one.
func (m *Member) ID() string {
	if p := m.current(); p != nil {
		return p.id
	}
	return ""
}

// Owned returns how many partitions the member runs.
func (m *Member) Owned() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.owned)
}

// Run participates until ctx ends, and then releases all partitions in an orderly way.
func (m *Member) Run(ctx context.Context) {
	look, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	looking.Go(func() { m.watch(look) })
	for ctx.Err() == nil {
		m.live(ctx)
	}
}

// watch updates the view. It replaces a watcher that does not even deliver this member's own
// renewals.
func (m *Member) watch(ctx context.Context) {
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(ctx)
		var checking sync.WaitGroup
		checking.Go(func() {
			for attempt.Err() == nil {
				pause(attempt, m.opts.TTL)
				if p := m.current(); p != nil && p.check() == nil && time.Since(p.born) > 2*m.opts.TTL &&
					time.Since(m.view.heard(p.id)) > 2*m.opts.TTL {
					cancel()
				}
			}
		})
		m.table.Watch(attempt, m.view.see)
		cancel()
		checking.Wait()
	}
}

// lookEvery is the longest interval between looks for partitions to take.
const lookEvery = 300 * time.Millisecond

// live is one session, from its announcement until it is lost or ctx ends.
func (m *Member) live(ctx context.Context) {
	p, err := begin(ctx, m.table, m.opts.Name, m.opts.TTL, m.session())
	if err != nil {
		return // ctx has ended
	}
	m.mu.Lock()
	m.pulse = p
	m.mu.Unlock()
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var beating sync.WaitGroup
	stop, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	beating.Go(func() { defer abort(); m.beat(stop, p) })

	for ctx.Err() == nil && work.Err() == nil {
		m.reconcile(work, p)
		select {
		case <-ctx.Done():
		case <-work.Done():
		case <-time.After(min(m.opts.TTL/5, lookEvery)):
		}
	}
	// The session continues while partitions finish: they must be able to write.
	m.quitAll(abort)
	stopBeating()
	beating.Wait()
	p.end()
	// All have stopped, so other members need not wait until the session expires.
	farewell := m.session()
	farewell.Dead = true
	p.renew(context.WithoutCancel(ctx), farewell)
}

// rests reports whether the member takes no partitions of a module at present.
func (m *Member) rests(module message.Module) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.rest[module])
}

func (m *Member) session() Session {
	s := Session{TTL: m.opts.TTL, Seen: m.seen()}
	for module := range m.opts.Parts {
		if !m.rests(module) {
			s.Modules = append(s.Modules, module.String())
		}
	}
	if m.opts.Report != nil {
		s.Report, _ = json.Marshal(m.opts.Report()) // left out if it fails
	}
	return s
}

// beat renews the session until it is lost.
func (m *Member) beat(ctx context.Context, p *pulse) {
	for last := time.Now(); ctx.Err() == nil; {
		pause(ctx, min(m.opts.TTL/4, lookEvery))
		if time.Since(last) >= m.opts.TTL/4 {
			last = time.Now()
			if ctx.Err() == nil && !p.renew(ctx, m.session()) && !p.adopt(ctx) {
				p.end()
			}
		}
		if p.check() != nil {
			return
		}
	}
}

// reconcile declares silent members dead, takes free partitions and releases surplus ones.
func (m *Member) reconcile(ctx context.Context, p *pulse) {
	for id, s := range m.view.silent(time.Now(), m.opts.TTL+m.opts.TTL/4) {
		if id != p.id {
			s.Dead, s.Report = true, nil
			tombstone, _ := json.Marshal(s.Session) // cannot fail
			m.table.Try(ctx, sessionPrefix+id, tombstone, s.revision)
		}
	}
	if m.view.heard(p.id).IsZero() {
		return // the view is older than this session
	}
	m.giveBack(ctx)
	for module, parts := range m.opts.Parts {
		share, mine := 0, m.running(module)
		if !m.rests(module) {
			share = m.view.share(module, parts, p.id)
		}
		// At random, so that members do not all try for the same one and fail.
		for _, part := range rand.Perm(parts) {
			switch {
			case mine >= share:
				m.release(ctx, p, message.Dest{To: module, Part: part})
			case m.take(ctx, p, message.Dest{To: module, Part: part}):
				mine++
			}
		}
		if mine > share {
			m.giveAway(module, mine-share)
		}
	}
}

func (m *Member) running(module message.Module) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.owned {
		if o.claim.To == module && !o.leaving {
			n++
		}
	}
	return n
}

// take tries to acquire one partition, and runs it if that succeeds.
func (m *Member) take(ctx context.Context, p *pulse, d message.Dest) bool {
	key := LeaseKey(d)
	lease, free := m.view.free(d)
	m.mu.Lock()
	unreadable := m.unreadable[key]
	m.mu.Unlock()
	if !free && lease.Owner != p.id || unreadable || m.runs(key) || p.check() != nil {
		return false
	}
	next := Lease{Owner: p.id, Epoch: lease.Epoch + 1}
	value, _ := json.Marshal(next) // cannot fail
	ok, revision := m.table.Try(ctx, key, value, lease.revision)
	if !ok {
		return false
	}
	quit := make(chan struct{})
	o := &ownership{
		claim:    Claim{d, next.Epoch, p.check, quit},
		revision: revision,
		quit:     sync.OnceFunc(func() { close(quit) }),
		done:     make(chan struct{}),
	}
	m.mu.Lock()
	m.owned[key] = o
	m.mu.Unlock()
	go m.run(ctx, key, o)
	return true
}

// release gives back leases of this session that it does not run. These exist if the broker stored
// a lease, or lost its return, and the answer did not come in time. No other member would take such
// a partition, since its owner is alive. take does, if there is room.
func (m *Member) release(ctx context.Context, p *pulse, d message.Dest) {
	key := LeaseKey(d)
	lease, _ := m.view.free(d)
	if lease.Owner == p.id && !m.runs(key) {
		m.table.Try(ctx, key, returned(lease.Epoch), lease.revision)
	}
}

// returned is a lease that was given back.
func returned(epoch uint64) []byte {
	value, _ := json.Marshal(Lease{Epoch: epoch}) // cannot fail
	return value
}

// runs reports whether this process runs a partition.
func (m *Member) runs(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owned[key] != nil
}

// run runs a partition and then gives it back.
func (m *Member) run(ctx context.Context, key string, o *ownership) {
	defer close(o.done)
	err := m.opts.Run(ctx, o.claim)
	// If the partition was lost, this fails, since the new owner has changed the lease. That is
	// right.
	m.table.Try(context.WithoutCancel(ctx), key, returned(o.claim.Epoch), o.revision)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owned, key)
	// If another member has taken over, this process has not failed. Any other error would occur
	// again and again, with this partition or with any other one of the module.
	if err == nil || theirs(err) || ctx.Err() != nil {
		return
	}
	if broken := (*StateError)(nil); errors.As(err, &broken) {
		m.unreadable[key] = true
	} else {
		m.rest[o.claim.To] = time.Now().Add(m.opts.Rest)
	}
	m.opts.Failed(o.claim, err)
}

// giveAway releases n partitions of a module.
func (m *Member) giveAway(module message.Module, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.owned {
		if n > 0 && o.claim.To == module && !o.leaving {
			o.leaving = true
			o.quit()
			n--
		}
	}
}

// quitGrace bounds the time for partitions to store their work, once it is finished.
const quitGrace = 10 * time.Second

// quitAll ends all partitions: those that do not finish in time are aborted.
func (m *Member) quitAll(abort context.CancelFunc) {
	m.mu.Lock()
	all := make([]*ownership, 0, len(m.owned))
	for _, o := range m.owned {
		o.leaving = true
		o.quit()
		all = append(all, o)
	}
	m.mu.Unlock()
	late := time.AfterFunc(m.opts.Longest+quitGrace, abort)
	defer late.Stop()
	for _, o := range all {
		<-o.done
	}
}
