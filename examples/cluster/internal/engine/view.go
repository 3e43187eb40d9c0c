package engine

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A view has the sessions and leases that a member has seen. Its methods are safe for concurrent
// use.
type view struct {
	mu       sync.Mutex
	sessions map[string]seenSession // by id
	leases   map[string]seenLease   // by key
	revision uint64                 // of the last entry
	whole    bool                   // the initial content is complete
}

// A seenSession is a session as far as it is known. Its revision is 0 if only a lease has named it.
type seenSession struct {
	Session
	revision uint64
	seen     time.Time
	stored   time.Time // by the clock of the broker
}

type seenLease struct {
	Lease
	revision uint64
	seen     time.Time
}

func newView() *view {
	return &view{sessions: map[string]seenSession{}, leases: map[string]seenLease{}}
}

// see processes one entry of the table.
func (v *view) see(e *jet.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e == nil {
		v.whole = true
		return
	}
	v.revision = max(v.revision, e.Revision)
	if id, ok := strings.CutPrefix(e.Key, sessionPrefix); ok {
		var s Session
		if e.Value == nil || json.Unmarshal(e.Value, &s) != nil {
			s.Dead = true
		}
		v.sessions[id] = seenSession{s, e.Revision, e.Seen, e.Stored}
		return
	}
	var l Lease
	switch {
	case e.Value == nil && strings.HasPrefix(e.Key, "addr."): // it has expired
		delete(v.leases, e.Key)
		return
	case e.Value != nil && json.Unmarshal(e.Value, &l) != nil:
		return
	}
	v.leases[e.Key] = seenLease{l, e.Revision, e.Seen}
	// After a pause, a lease may arrive before its owner's session, of which only the latest
	// renewal is stored. Such an owner counts as alive until it has been silent for long enough.
	if _, known := v.sessions[l.Owner]; !known && l.Owner != "" {
		v.sessions[l.Owner] = seenSession{seen: e.Seen}
	}
}

// silent returns the sessions that have not changed for longer than ttl.
func (v *view) silent(now time.Time, ttl time.Duration) map[string]seenSession {
	v.mu.Lock()
	defer v.mu.Unlock()
	found := map[string]seenSession{}
	for id, s := range v.sessions {
		if !s.Dead && now.Sub(s.seen) > ttl {
			found[id] = s
		}
	}
	return found
}

// share returns how many partitions of a module a member should have. The remainder of the division
// goes to the first ids in order, so all members agree and none is left out.
func (v *view) share(m message.Module, parts int, member string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	members, before := 0, 0
	for id, s := range v.sessions {
		if s.Dead || !s.runs(m) {
			continue
		}
		members++
		if id < member {
			before++
		}
	}
	if members == 0 {
		return parts
	}
	share := parts / members
	if before < parts%members {
		share++
	}
	return share
}

// free returns a partition's lease if no live member has it.
func (v *view) free(d message.Dest) (seenLease, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	lease := v.leases[LeaseKey(d)]
	return lease, v.whole && v.isFree(lease.Lease)
}

// isFree reports whether no live member has a lease. It requires that v.mu is held.
func (v *view) isFree(l Lease) bool { return l.Owner == "" || v.sessions[l.Owner].Dead }

// available is isFree for a view that is complete.
func (v *view) available(l Lease) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.whole && v.isFree(l)
}

// lease returns the lease of an address, and whether there may be one.
func (v *view) lease(key string) (l seenLease, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l, known = v.leases[key]
	if known && l.Owner == "" && time.Since(l.seen) > restTTL+2*markerTTL {
		delete(v.leases, key) // it has expired while nothing could be watched
		return seenLease{}, !v.whole
	}
	return l, known || !v.whole
}

// addresses returns the leases of addresses that a session has, by key.
func (v *view) addresses(id string) map[string]seenLease {
	v.mu.Lock()
	defer v.mu.Unlock()
	mine := map[string]seenLease{}
	for key, l := range v.leases {
		if l.Owner == id && strings.HasPrefix(key, "addr.") {
			mine[key] = l
		}
	}
	return mine
}

// last returns the revision of the last entry seen.
func (v *view) last() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.revision
}

// allSeen reports whether all members heed what the table has had since a revision.
func (v *view) allSeen(revision uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sessions {
		if !s.Dead && s.Seen < revision {
			return false
		}
	}
	return v.whole
}

// heard returns when a session was last seen to change.
func (v *view) heard(id string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sessions[id].seen
}

// clockError is how much the clocks of the broker and of an operator's machine may differ before
// status is wrong about members. Nothing else depends on it.
const clockError = 30 * time.Second

// silent reports whether a session has not been renewed for so long that its process must be dead.
// Other members find that out earlier and with certainty, but there may be none left.
func (s seenSession) silent(now time.Time) bool {
	return now.Sub(s.stored) > 10*s.TTL+clockError
}

// ReadMembers returns the members that are alive, or were half a minute ago, and the leases by [LeaseKey].
func ReadMembers(ctx context.Context, table *jet.Table) (alive map[string]Session, leases map[string]Lease, err error) {
	seen := newView()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	table.Watch(watching, func(e *jet.Entry) {
		if seen.see(e); seen.whole {
			cancel()
		}
	})
	if !seen.whole {
		return nil, nil, context.Cause(ctx)
	}
	alive, leases = map[string]Session{}, map[string]Lease{}
	for id, s := range seen.sessions {
		if !s.Dead && s.revision > 0 && !s.silent(time.Now()) {
			alive[id] = s.Session
		}
	}
	for key, l := range seen.leases {
		leases[key] = l.Lease
	}
	return alive, leases, nil
}
