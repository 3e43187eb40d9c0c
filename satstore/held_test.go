package satstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// holdMany lets a record of each of so many slots be out, and calls last in the last one of them.
func holdMany(t *testing.T, s *Store, slots int, last func()) (held []*Record) {
	t.Helper()
	for i := range slots {
		mustAdd(t, s, fmt.Sprint("held ", i), s.Now(), "x")
		if i == slots-1 {
			last()
			break
		}
		dueIDs(t, s, func(r *Record) { held = append(held, r) })
		require.NoError(t, s.Advance())
	}
	require.Len(t, s.due, slots)
	return held
}

// TestMergedOnceBehindMany: while records of many passed slots are held, one that is visited again
// and again does not come to lie where its old messages are.
func TestMergedOnceBehindMany(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	held := holdMany(t, s, maxDue, func() {
		mustAdd(t, s, "id", s.Now(), "old")
		require.NoError(t, s.Update("id", []byte("once")))
	})
	want := "old+once"
	for n := range 5 {
		dueIDs(t, s, func(r *Record) {
			if string(r.ID) != "id" {
				held = append(held, r)
				return
			}
			require.Equal(t, want, string(r.Data))
			want += fmt.Sprint("+", n)
			require.NoError(t, s.Update("id", fmt.Append(nil, n)))
			require.NoError(t, r.Reschedule(s.Now()+1, r.Data))
		})
		require.NoError(t, s.Advance())
		require.Equal(t, want, datasOf(t, s)["id"])
		killed := mustOpen(t, fs.Clone(), o)
		require.Equal(t, want, datasOf(t, killed)["id"], "after a kill")
		require.NoError(t, killed.Check())
	}
	require.LessOrEqual(t, len(s.due), maxDue+2)
	for _, r := range held {
		require.NoError(t, r.Delete())
	}
	require.NoError(t, s.Advance())
	require.LessOrEqual(t, len(s.due), 1, "who gives back gets the room back")
	require.NoError(t, s.Check())
}

// TestLateForAPass: records of a later slot that come into a bucket which is being read in several
// passes are handed out in this walk, once, with their messages.
func TestLateForAPass(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	add := func(kind string, slot int64) {
		for i := range 30 {
			id := fmt.Sprint(kind, i)
			mustAdd(t, s, id, slot, "x")
			want[id] = "x"
			for n := range 15 {
				text := fmt.Sprintf("%20d", n)
				require.NoError(t, s.Update(id, []byte(text)))
				want[id] += "+" + text
			}
		}
	}
	holdMany(t, s, maxDue, func() {
		add("early ", s.Now())
		add("late ", s.Now()+1)
	})
	got := map[string]string{}
	for range 2 {
		dueIDs(t, s, func(r *Record) {
			require.NotContains(t, got, string(r.ID))
			if got[string(r.ID)] = string(r.Data); len(got) == 20 { // in the midst of some pass
				require.NoError(t, s.Advance())
				require.Len(t, s.due, maxDue, "they move together")
				require.Greater(t, s.due[maxDue-1].passes, uint64(3))
				require.NoError(t, s.Update("late 7", []byte("in time")))
			}
		})
	}
	delete(got, fmt.Sprint("held ", maxDue-1))
	want["late 7"] += "+in time"
	require.Equal(t, want, got)
}

// TestTooManyAreHeld: there is a bound, at which no slot begins before something is given back.
func TestTooManyAreHeld(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	held := holdMany(t, s, 3, func() {})
	dueIDs(t, s, func(r *Record) { held = append(held, r) })
	was := s.due
	s.due = nil
	for range maxHeld - len(was) { // as if it had gone on so
		s.due = append(s.due, &bucket{start: 900, records: part{disk: 1}})
	}
	s.due = append(s.due, was...)
	require.NoError(t, held[2].Reschedule(1010, nil))
	mustAdd(t, s, "new", 0, "x") // so that the newest bucket has a record
	require.ErrorContains(t, s.Advance(), "8192")
	require.EqualValues(t, 1002, s.Now())
	s.due = was
	require.NoError(t, s.Advance(), "it was no failure of the store")
}
