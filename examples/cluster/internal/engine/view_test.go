package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// entry is a value of the table as a watcher delivers it.
func entry(t *testing.T, key string, value any, revision uint64, seen time.Time) *jet.Entry {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return &jet.Entry{Key: key, Value: data, Revision: revision, Seen: seen}
}

func TestASessionIsSilentWhenItDoesNotChange(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v := newView()
	v.see(entry(t, "session.a", Session{}, 1, at))
	v.see(entry(t, "session.b", Session{}, 2, at))
	v.see(entry(t, "session.c", Session{Dead: true}, 3, at))
	require.Empty(t, v.silent(at.Add(time.Second), time.Second))
	v.see(entry(t, "session.b", Session{}, 4, at.Add(time.Second)))
	silent := v.silent(at.Add(time.Second+1), time.Second)
	require.Len(t, silent, 1)
	require.EqualValues(t, 1, silent["a"].revision, "the session is replaced only at this revision")
	require.Equal(t, at, v.heard("a"))
	require.True(t, v.heard("nobody").IsZero())
}

func TestSharesCountOnlyTheMembersOfAModule(t *testing.T) {
	v := newView()
	require.Equal(t, 16, v.share(message.Fetch, 16, "a"), "the member has seen no other one yet")
	for i, s := range []Session{
		{Modules: []string{"fetch", "dedupe"}}, {Modules: []string{"fetch"}}, {Modules: []string{"fetch"}},
		{Modules: []string{"hosts"}}, {Modules: []string{"fetch"}, Dead: true},
	} {
		v.see(entry(t, "session."+string(rune('a'+i)), s, uint64(i), time.Time{}))
	}
	require.Equal(t, 6, v.share(message.Fetch, 16, "a"))
	require.Equal(t, 5, v.share(message.Fetch, 16, "b"))
	require.Equal(t, 5, v.share(message.Fetch, 16, "c"))
	require.Equal(t, 16, v.share(message.Dedupe, 16, "a"))
	for member, want := range map[string]int{"a": 2, "b": 1, "c": 1} {
		require.Equal(t, want, v.share(message.Fetch, 4, member), "every member has a share")
	}
}

func TestAPartitionIsFreeWithoutALiveOwner(t *testing.T) {
	v := newView()
	free := func(part int) bool {
		_, free := v.free(message.Dest{To: message.Fetch, Part: part})
		return free
	}
	require.False(t, free(0), "the existing values have not been read yet")
	v.see(entry(t, "session.a", Session{}, 1, time.Time{}))
	v.see(entry(t, "session.b", Session{Dead: true}, 2, time.Time{}))
	for part, owner := range []string{"a", "b", "", "gone"} {
		v.see(entry(t, LeaseKey(message.Dest{To: message.Fetch, Part: part}), Lease{Owner: owner, Epoch: 7}, 3, time.Time{}))
	}
	v.see(nil)
	require.False(t, free(0))
	require.True(t, free(1), "its owner is dead")
	require.True(t, free(2), "it was given back")
	require.False(t, free(3), "its owner may be alive")
	require.True(t, free(4), "it never had an owner")
	lease, _ := v.free(message.Dest{To: message.Fetch, Part: 1})
	require.EqualValues(t, 7, lease.Epoch)
	v.see(&jet.Entry{Key: "session.a"})
	require.True(t, free(0), "the session was removed")
	v.see(&jet.Entry{Key: "session.a", Value: []byte("{")})
	require.True(t, free(0), "its session is unreadable")
}

// TestTheDeadlineCountsFromTheSending tests what makes takeover safe: other members count from the
// later time at which they see the renewal.
func TestTheDeadlineCountsFromTheSending(t *testing.T) {
	_, leases, _ := setup(t)()
	before := time.Now()
	p, err := begin(t.Context(), leases, "a name/with.dots", time.Hour, Session{})
	require.NoError(t, err)
	require.Regexp(t, `^a_name_with_dots-[0-9a-f]{12}$`, p.id)
	deadline := p.born.Add(time.Duration(p.deadline.Load()))
	require.False(t, deadline.After(time.Now().Add(time.Hour)))
	require.False(t, deadline.Before(before.Add(time.Hour)))
	require.NoError(t, p.check())

	// Another member declares the session dead. Then no renewal succeeds, and the deadline stays.
	ok, _ := leases.Try(t.Context(), sessionPrefix+p.id, []byte(`{"Dead":true}`), p.revision)
	require.True(t, ok)
	require.False(t, p.renew(t.Context(), Session{}))
	require.False(t, p.adopt(t.Context()))
	require.Equal(t, deadline, p.born.Add(time.Duration(p.deadline.Load())))
	p.end()
	require.ErrorIs(t, p.check(), ErrLost)
}

// TestAnExpiredSessionStaysExpired has a renewal that succeeds after the session has expired.
// Callers of check have given up in between.
func TestAnExpiredSessionStaysExpired(t *testing.T) {
	_, leases, _ := setup(t)()
	p, err := begin(t.Context(), leases, "a", time.Hour, Session{})
	require.NoError(t, err)
	p.deadline.Store(0)
	require.ErrorIs(t, p.check(), ErrLost)
	require.True(t, p.renew(t.Context(), Session{}), "it has not been replaced yet")
	require.ErrorIs(t, p.check(), ErrLost)
}

// TestARenewalWhoseAnswerWasLostIsAdopted has a renewal that the broker has stored without the
// member's knowledge.
func TestARenewalWhoseAnswerWasLostIsAdopted(t *testing.T) {
	_, leases, _ := setup(t)()
	p, err := begin(t.Context(), leases, "a", time.Hour, Session{})
	require.NoError(t, err)
	ok, _ := leases.Try(t.Context(), sessionPrefix+p.id, []byte(`{}`), p.revision)
	require.True(t, ok)
	require.False(t, p.renew(t.Context(), Session{}))
	require.True(t, p.adopt(t.Context()), "the session is still the member's")
	require.True(t, p.renew(t.Context(), Session{}))
}

// TestAnAnnouncementWhoseAnswerWasLostIsAdopted does the same for the first write of a session.
func TestAnAnnouncementWhoseAnswerWasLostIsAdopted(t *testing.T) {
	_, leases, _ := setup(t)()
	p := newPulse(leases, "a", time.Hour)
	require.True(t, p.renew(t.Context(), Session{}))
	p.revision = 0
	require.NoError(t, p.announce(t.Context(), Session{}))
	require.NoError(t, p.check())
}

// TestAnOwnerThatIsNotKnownYetIsAlive delivers a lease before its owner's session, as after a
// pause: only the latest value of each key is stored, and a session is renewed after its leases.
func TestAnOwnerThatIsNotKnownYetIsAlive(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v := newView()
	v.see(nil)
	v.see(entry(t, LeaseKey(message.Dest{To: message.Fetch, Part: 0}), Lease{Owner: "b", Epoch: 7}, 3, at))
	_, free := v.free(message.Dest{To: message.Fetch, Part: 0})
	require.False(t, free)
	require.Empty(t, v.silent(at.Add(time.Second), time.Second))
	silent := v.silent(at.Add(time.Second+1), time.Second)
	require.Contains(t, silent, "b", "but it may not exist")
	require.Zero(t, silent["b"].revision, "it is declared dead only if it has no session")
	require.Equal(t, 4, v.share(message.Fetch, 4, "a"), "the unknown owner has no share")

	v.see(entry(t, "session.b", Session{Modules: []string{"fetch"}}, 4, at.Add(time.Second)))
	require.Empty(t, v.silent(at.Add(time.Second+1), time.Second))
	v.see(entry(t, LeaseKey(message.Dest{To: message.Fetch, Part: 1}), Lease{Owner: "b", Epoch: 7}, 5, at.Add(time.Hour)))
	require.Equal(t, at.Add(time.Second), v.heard("b"), "a lease does not show that its owner is alive")
}

func TestAnOwnerWithoutASessionIsNotAMember(t *testing.T) {
	_, leases, _ := setup(t)()
	for key, value := range map[string]any{
		LeaseKey(message.Dest{To: message.Fetch, Part: 0}): Lease{Owner: "nobody", Epoch: 1},
		sessionPrefix + "a": Session{Modules: []string{"fetch"}},
		sessionPrefix + "b": Session{Dead: true},
	} {
		data, err := json.Marshal(value)
		require.NoError(t, err)
		require.NoError(t, leases.Put(t.Context(), key, data))
	}
	sessions, _, err := ReadMembers(t.Context(), leases)
	require.NoError(t, err)
	require.Equal(t, map[string]Session{"a": {Modules: []string{"fetch"}}}, sessions)
}

// TestStatusOmitsTheLastDeadMember has no member left that could declare the last one dead.
func TestStatusOmitsTheLastDeadMember(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		ttl, since time.Duration
		silent     bool
	}{
		{DefaultTTL, 0, false},
		{DefaultTTL, 10 * time.Second, false}, // another clock
		{DefaultTTL, -10 * time.Second, false},
		{DefaultTTL, 2 * time.Minute, true},
		{5 * time.Minute, 2 * time.Minute, false},
		{0, time.Minute, true},
	} {
		s := seenSession{Session: Session{TTL: tt.ttl}, stored: now.Add(-tt.since)}
		require.Equal(t, tt.silent, s.silent(now), "%+v", tt)
	}
}
