// Package engine runs the partitions of a crawl's modules, each in exactly one process at a time.
//
// A [Member] is a process. It shares the partitions of its modules with the other members, takes
// over those of dead members, and gives some away to new ones. The state of a partition and its
// position in the stream are stored as one value, so they cannot contradict each other. [Fold] is
// the runner of all modules: it applies messages to a state and commits both.
//
// # Ownership
//
// A member renews one value, its session. The session is valid for a time-to-live after the last
// successful renewal was sent, by the monotonic clock of the member. Another member that has not
// seen the value change for longer than that replaces it with a compare-and-set, and from then on
// no renewal succeeds. So when a session is replaced, its owner no longer considers it valid,
// however the clocks differ. Only then are its leases taken over, each with an epoch one higher
// than before.
//
// # Fencing
//
// A process that was suspended may still consider itself the owner. So its writes are refused: only
// a writer that knows the current revision can replace a partition's state, and the new owner has
// changed the revision; and the guard is checked immediately before each commit and each request to a
// web server.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// ErrLost means that a member may no longer write: its session has expired or was replaced.
var ErrLost = errors.New("engine: ownership lost")

// ErrFenced means that a partition has a new owner.
var ErrFenced = errors.New("engine: the partition has a new owner")

// DefaultTTL is how long a silent member counts as alive.
const DefaultTTL = 3 * time.Second

// A Session is what a member publishes about itself.
type Session struct {
	Modules []string // whose partitions it takes
	Dead    bool     `json:",omitempty"` // it has ended, or others found it silent
	Seen    uint64   // revision of the table that all its requests heed
	TTL     time.Duration
	Report  json.RawMessage `json:",omitempty"` // for operators
}

// runs reports whether the member takes partitions of the module.
func (s *Session) runs(m message.Module) bool {
	return slices.Contains(s.Modules, m.String())
}

// A Lease names the owner of a partition or of an address.
type Lease struct {
	Owner string // the id of a session; "" if the partition was given back
	Epoch uint64 // higher with each owner
	Part  int    `json:",omitempty"` // of fetch, for which the owner has an address
}

const sessionPrefix = "session."

// LeaseKey names the lease of a partition.
func LeaseKey(d message.Dest) string { return "lease." + d.String() }

// A pulse renews a session. Its methods are safe for concurrent use.
type pulse struct {
	id       string
	table    *jet.Table
	ttl      time.Duration
	born     time.Time
	deadline atomic.Int64 // nanoseconds after born, on the monotonic clock
	over     atomic.Bool  // check has failed
	revision uint64       // used by one goroutine at a time
}

// begin announces a new session, whose id is never used again.
func begin(
	ctx context.Context, table *jet.Table, name string, ttl time.Duration, s Session,
) (*pulse, error) {
	p := newPulse(table, name, ttl)
	return p, p.announce(ctx, s)
}

// newPulse returns a session that has not been announced.
func newPulse(table *jet.Table, name string, ttl time.Duration) *pulse {
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails
	return &pulse{
		id: clean(name) + "-" + hex.EncodeToString(unique), table: table, ttl: ttl, born: time.Now(),
	}
}

// announce writes the session for the first time. If the answer is lost, only a renewal succeeds.
func (p *pulse) announce(ctx context.Context, s Session) error {
	for ctx.Err() == nil {
		if p.renew(ctx, s) {
			return nil
		}
		p.adopt(ctx)
		pause(ctx, min(p.ttl/10, lookEvery))
	}
	return ctx.Err()
}

// clean replaces characters that a key of a table may not have.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, name)
}

// renew writes the session again. It takes the time before the write, which may take long: others
// count from when they see it.
func (p *pulse) renew(ctx context.Context, s Session) bool {
	value, err := json.Marshal(s)
	if err != nil {
		return false
	}
	sent := time.Now()
	ctx, cancel := context.WithTimeout(ctx, max(p.ttl/2, 50*time.Millisecond))
	defer cancel()
	ok, revision := p.table.Try(ctx, sessionPrefix+p.id, value, p.revision)
	if ok {
		p.revision = revision
		if !s.Dead {
			p.deadline.Store(int64(sent.Add(p.ttl).Sub(p.born)))
		}
	}
	return ok
}

// adopt checks whether a renewal was stored although its answer was lost. It reports whether this
// process still owns the session.
func (p *pulse) adopt(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, max(p.ttl/2, 50*time.Millisecond))
	defer cancel()
	revision, value, err := p.table.Look(ctx, sessionPrefix+p.id)
	var s Session
	if err != nil || value == nil || json.Unmarshal(value, &s) != nil {
		return true // unknown; the deadline decides
	}
	p.revision = revision
	return !s.Dead
}

// check guards everything that the member writes. Once it has failed, it fails forever, even if a
// late renewal succeeds after all: a caller has given up because of the failure, and would not
// learn that the session continues.
func (p *pulse) check() error {
	if p.over.Load() {
		return ErrLost
	}
	if int64(time.Since(p.born)) >= p.deadline.Load() {
		p.over.Store(true)
		return ErrLost
	}
	return nil
}

// end makes check fail.
func (p *pulse) end() { p.over.Store(true) }

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
