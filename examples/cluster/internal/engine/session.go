// Package engine runs the partitions of a crawl's modules, each in exactly one process at a time.
//
// A [Member] is a process. It shares the partitions of its modules with the other members, takes
// over those of members that have died, and gives some away to members that come. A partition's
// state is kept with the sequence of the stream up to which it reaches, in one value, so that the
// two cannot contradict each other; [Fold] is the runner for modules that are nothing but state.
//
// # Ownership
//
// A member renews one value, its session, and believes in itself for a time-to-live from the
// moment at which the last successful renewal was sent, by its own monotonic clock. Another member
// that has not seen the value change for longer than that replaces it, on condition that it is
// still the one that it saw; from then on no renewal succeeds. So when a session is replaced, its
// owner has stopped believing in it, wherever the clocks stand. Only then its leases are taken
// over, each with an epoch one higher than before.
//
// # Fencing
//
// A process that stood still may believe what was true before. So everything it writes is refused:
// only a writer that knows the present revision replaces a partition's state, and the new owner has
// changed that; readers leave out messages of older epochs; and the guard is asked once
// more right before each message and each request to a web server.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// ErrLost says that a member may not write any more: its session has run out or was replaced.
var ErrLost = errors.New("engine: ownership lost")

// DefaultTTL is how long a member that says nothing counts as alive.
const DefaultTTL = 3 * time.Second

// A Session is what a member says about itself to the others.
type Session struct {
	Modules []string // whose partitions it takes
	Dead    bool     `json:",omitempty"` // it ended, or others found that it says nothing
	TTL     time.Duration
	// Loads has thousandths of a second of work per second, by module and partition.
	Loads  map[string]map[int]int `json:",omitempty"`
	Report json.RawMessage        `json:",omitempty"` // for operators to see
}

// runs says whether the member takes partitions of the module.
func (s *Session) runs(m message.Module) bool {
	for _, name := range s.Modules {
		if name == m.String() {
			return true
		}
	}
	return false
}

// A Lease says who owns a partition.
type Lease struct {
	Owner string // the id of a session; "" if the partition was given back
	Epoch uint64 // higher with each owner
}

const sessionPrefix = "session."

func leaseKey(m message.Module, part int) string {
	return fmt.Sprintf("lease.%s.%d", m, part)
}

// A pulse is a session that is kept alive. Its methods are safe for concurrent use.
type pulse struct {
	id       string
	table    *jet.Table
	ttl      time.Duration
	born     time.Time
	deadline atomic.Int64 // nanoseconds after born, on the monotonic clock
	over     atomic.Bool  // check has failed once
	revision uint64       // used by one goroutine at a time
}

// begin announces a new session, whose id is never used again.
func begin(
	ctx context.Context, table *jet.Table, name string, ttl time.Duration, s Session,
) (*pulse, error) {
	p := newPulse(table, name, ttl)
	return p, p.announce(ctx, s)
}

// newPulse returns a session that nobody knows of.
func newPulse(table *jet.Table, name string, ttl time.Duration) *pulse {
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails
	return &pulse{
		id: clean(name) + "-" + hex.EncodeToString(unique), table: table, ttl: ttl, born: time.Now(),
	}
}

// announce writes the session for the first time. The answer may be lost here, too, and then only a
// renewal succeeds.
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

// clean keeps to what a key of a table may have.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, name)
}

// renew writes the session once more. Time is taken before: the write may be long under way, and
// others count from when they see it.
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

// adopt looks whether a renewal was stored whose answer was lost. It reports whether the session is
// still this process's own.
func (p *pulse) adopt(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, max(p.ttl/2, 50*time.Millisecond))
	defer cancel()
	revision, value, err := p.table.Look(ctx, sessionPrefix+p.id)
	var s Session
	if err != nil || value == nil || json.Unmarshal(value, &s) != nil {
		return true // not known; the deadline decides
	}
	p.revision = revision
	return !s.Dead
}

// check is the guard of all that the member writes. Once it has failed it fails for ever, also if a
// renewal that was long under way succeeds after all: somebody has given up for it, and would never
// know that the session goes on.
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
