package satstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// contents returns all records, by id, as "slot data".
func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for item, err := range s.Scan() {
		require.NoError(t, err)
		if _, twice := all[item.ID]; twice {
			t.Fatalf("%s has two records", item.ID)
		}
		all[item.ID] = fmt.Sprint(slotAt(item.At), " ", string(item.Data))
	}
	return all
}

// datasOf returns the data of all records, without their slots.
func datasOf(t testing.TB, s *Store) map[string]string {
	all := contents(t, s)
	for id, text := range all {
		_, all[id], _ = strings.Cut(text, " ")
	}
	return all
}

func mustOpen(t testing.TB, fs vfs.FS, o Options) *Store {
	t.Helper()
	s, err := open(fs, o)
	require.NoError(t, err)
	return s
}

func mustAdd(t testing.TB, s *Store, id string, slot int64, data string) {
	t.Helper()
	added, err := s.Add(id, at(slot), []byte(data))
	require.NoError(t, err)
	require.True(t, added)
}

// due returns the ids of the records that are due until a slot, after calling visit with each.
func due(t testing.TB, s *Store, slot int64, visit func(*Record)) (ids []string) {
	t.Helper()
	for r, err := range s.Due(t.Context(), at(slot)) {
		require.NoError(t, err)
		ids = append(ids, r.ID)
		if visit != nil {
			visit(r)
		}
	}
	return ids
}

// nowOf returns the current slot.
func nowOf(s *Store) int64 { return slotAt(s.Now()) }

// checkpointNow writes a checkpoint.
func (s *Store) checkpointNow() error {
	err := s.checkpoint(false)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.fail(err)
	}
	return nil
}

// abandon leaves a store as a killed process would: without Close, but with the lock released.
func abandon(s *Store) {
	s.tasks.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	_ = s.lock.Close()
}

// filled returns a store with records in many places, and its contents. It is closed, or left with
// a log as after a crash.
func filled(t testing.TB, o Options, closed bool) (*vfs.Mem, Options, map[string]string) {
	p := newPlayer(t, o, 3)
	for range 300 {
		require.NoError(t, p.play())
	}
	require.NoError(t, p.s.checkpointNow())
	for range 30 {
		require.NoError(t, p.play())
	}
	require.NoError(t, p.s.Sync())
	want := contents(t, p.s)
	if closed {
		require.NoError(t, p.s.Close())
	}
	return p.fs.Clone(), p.o, want
}

// logged returns options for a store from slot 1 on whose log only Sync syncs.
func logged() Options { return Options{Start: at(1), Commit: -1} }

// TestMessages lists what happens to messages, whatever happens to their record. A replay of the
// log must give the same result.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		play func(c *scene)
		want string // slot and data, or nothing if the record is gone
	}{
		{"a message is merged when the record is read", func(c *scene) {
			c.update("a")
		}, "1 old+a"},
		{"messages are merged in order", func(c *scene) {
			c.update("a")
			c.update("b")
			c.update("c")
		}, "1 old+a+b+c"},
		{"a record that is handed out has its messages", func(c *scene) {
			c.update("a")
			c.handOut()
			c.giveBack(5)
		}, "5 old+a visited"},
		{"a message for a record that is out waits for it", func(c *scene) {
			c.handOut()
			c.update("a")
			c.giveBack(5)
		}, "5 old visited+a"},
		{"only messages that arrive while it is out wait", func(c *scene) {
			c.update("a")
			c.handOut()
			c.update("b")
			c.giveBack(5)
		}, "5 old+a visited+b"},
		{"waiting messages are merged the next time", func(c *scene) {
			c.handOut()
			c.update("a")
			c.giveBack(2)
			c.advance(2)
			c.handOut()
			c.giveBack(3)
		}, "3 old visited+a visited"},
		{"a message for a far slot waits for the slot", func(c *scene) {
			c.handOut()
			c.giveBack(2000)
			c.update("a")
		}, "2000 old visited+a"},
		{"a message survives a slot whose records are not taken", func(c *scene) {
			c.update("a")
			c.update("b")
		}, "1 old+a+b"},
		{"a deleted record is gone immediately", func(c *scene) {
			c.delete()
		}, ""},
		{"a deletion overrides earlier messages", func(c *scene) {
			c.update("a")
			c.delete()
		}, ""},
		{"a deleted record is not handed out", func(c *scene) {
			c.delete()
			require.Empty(c.t, due(c.t, c.s, 1, nil))
		}, ""},
		{"a record that is deleted while it is out is gone, whatever its holder does", func(c *scene) {
			c.handOut()
			c.delete()
			c.giveBack(5)
		}, ""},
		{"a deleted id can be added again", func(c *scene) {
			c.delete()
			mustAdd(c.t, c.s, "id", 7, "new")
		}, "7 new"},
		{"and has no messages of the old record", func(c *scene) {
			c.update("a")
			c.delete()
			mustAdd(c.t, c.s, "id", 7, "new")
			c.update("b")
		}, "7 new+b"},
		{"nor is it affected by the old record that is out", func(c *scene) {
			c.handOut()
			c.delete()
			mustAdd(c.t, c.s, "id", 7, "new")
			c.giveBack(5)
		}, "7 new"},
		{"a record that its holder deletes is gone with its messages", func(c *scene) {
			c.handOut()
			c.update("a")
			require.NoError(c.t, c.r.Delete())
		}, ""},
		{"and its id can be added again", func(c *scene) {
			c.handOut()
			require.NoError(c.t, c.r.Delete())
			mustAdd(c.t, c.s, "id", 3, "new")
		}, "3 new"},
		{"a detached record behaves like any other", func(c *scene) {
			c.handOut()
			c.r = c.r.Detach()
			c.update("a")
			c.giveBack(5)
		}, "5 old visited+a"},
		{"a record that is returned late goes to the next slot", func(c *scene) {
			c.handOut()
			c.advance(3)
			c.giveBack(2)
		}, "4 old visited"},
		{"a changed ID field does not matter", func(c *scene) {
			c.handOut()
			c.r.ID = "other"
			c.giveBack(5)
		}, "5 old visited"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			fs, o := vfs.NewMem(), small(Options{})
			o.Start = at(1)
			s := mustOpen(t, fs, o)
			mustAdd(t, s, "id", 1, "old")
			tt.play(&scene{t: t, s: s})
			want := map[string]string{}
			if tt.want != "" {
				want["id"] = tt.want
			}
			require.Equal(t, want, contents(t, s))
			require.NoError(t, s.Check())
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, contents(t, killed), "after a kill")
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
			_, err := s.Get("id")
			if tt.want == "" {
				require.ErrorIs(t, err, ErrUnknown)
				require.ErrorIs(t, s.Update("id", nil), ErrUnknown)
				require.ErrorIs(t, s.Delete("id"), ErrUnknown)
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
			require.Equal(t, want, contents(t, mustOpen(t, fs, o)), "after Close")
		})
	}
}

// A scene is a store with one record, "old", due in slot 1, which is the current one.
type scene struct {
	t *testing.T
	s *Store
	r *Record // the last one handed out
}

func (c *scene) handOut() {
	c.t.Helper()
	require.Len(c.t, due(c.t, c.s, nowOf(c.s), func(r *Record) { c.r = r }), 1)
}

func (c *scene) update(text string) {
	c.t.Helper()
	require.NoError(c.t, c.s.Update("id", []byte(text)))
}

func (c *scene) delete() {
	c.t.Helper()
	require.NoError(c.t, c.s.Delete("id"))
}

func (c *scene) giveBack(slot int64) {
	c.t.Helper()
	require.NoError(c.t, c.r.Reschedule(at(slot), append(c.r.Data, " visited"...)))
}

func (c *scene) advance(slot int64) {
	c.t.Helper()
	require.NoError(c.t, c.s.pass(slot))
}

// pass advances to a slot without handing out records.
func (s *Store) pass(slot int64) (err error) {
	for more := true; more && err == nil; {
		more, err = s.advanceTo(context.Background(), slot)
	}
	return err
}

// TestAddEach checks that done is called with the new items only.
func TestAddEach(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	defer s.Close()
	items := func(ids ...string) (items []Item) {
		for _, id := range ids {
			items = append(items, Item{ID: id})
		}
		return items
	}
	for _, tt := range []struct{ ids, want []string }{
		{[]string{"a", "b", "a"}, []string{"a", "b"}},
		{[]string{"b", "c", "a"}, []string{"c"}},
		{[]string{"c"}, nil},
	} {
		var added []string
		require.NoError(t, s.AddEach(items(tt.ids...), func(item Item) { added = append(added, item.ID) }))
		require.Equal(t, tt.want, added)
	}
	require.ErrorIs(t, s.AddEach(items("d", ""), func(Item) { t.Error("all items are checked first") }), ErrSize)
}

// TestChangesSurviveTheProcess: each kind of change is found in the files of a killed process, even
// if it was not committed.
func TestChangesSurviveTheProcess(t *testing.T) {
	o := logged()
	o.test.pending = 8 << 10
	long := strings.Repeat("x", 6000) // more than a half has room for
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *Store, r *Record)
		want map[string]string
	}{
		{"an addition", func(t *testing.T, s *Store, _ *Record) {
			mustAdd(t, s, "b", 7, "new")
		}, map[string]string{"a": "1 old", "b": "7 new"}},
		{"an addition that is too large for the file", func(t *testing.T, s *Store, _ *Record) {
			mustAdd(t, s, "b", 7, long)
		}, map[string]string{"a": "1 old", "b": "7 " + long}},
		{"a visit", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, r.Reschedule(at(9), []byte("visited")))
		}, map[string]string{"a": "9 visited"}},
		{"a visit after a message", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, s.Update("a", []byte("later")))
			require.NoError(t, r.Reschedule(at(9), []byte("visited")))
		}, map[string]string{"a": "9 later"}},
		{"a visit of a record that was detached", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, r.Detach().Reschedule(at(9), []byte("visited")))
		}, map[string]string{"a": "9 visited"}},
		{"a record deleted by its holder", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, r.Delete())
		}, map[string]string{}},
		{"a message", func(t *testing.T, s *Store, _ *Record) {
			require.NoError(t, s.Update("a", []byte("message")))
		}, map[string]string{"a": "1 message"}},
		{"a deletion", func(t *testing.T, s *Store, _ *Record) {
			require.NoError(t, s.Delete("a"))
		}, map[string]string{}},
		{"a deletion and an addition", func(t *testing.T, s *Store, _ *Record) {
			require.NoError(t, s.Delete("a"))
			mustAdd(t, s, "a", 3, "again")
		}, map[string]string{"a": "3 again"}},
		{"a slot", func(t *testing.T, s *Store, _ *Record) {
			require.Empty(t, due(t, s, 2, nil))
		}, map[string]string{"a": "1 old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			mustAdd(t, s, "a", 1, "old")
			var out *Record
			due(t, s, 1, func(r *Record) { out = r })
			tt.do(t, s, out)
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, tt.want, contents(t, killed))
			require.Equal(t, s.Now(), killed.Now())
			require.NoError(t, killed.Check())
		})
	}
}

// TestTooLargeAndRefused: a change that must be written immediately, and cannot be, is refused, and
// earlier acknowledged changes are there.
func TestTooLargeAndRefused(t *testing.T) {
	fs, o := vfs.NewMem(), logged()
	o.test.pending = 8 << 10
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i := range 5 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 5, "x")
		want[id] = "5 x"
	}
	fs.SetSpace(fs.Used())
	_, err := s.Add("https://a.test/large", at(5), make([]byte, 10_000))
	require.ErrorIs(t, err, ErrReadOnly)
	found := mustOpen(t, fs.Clone(), o)
	require.Equal(t, want, contents(t, found))
	require.NoError(t, found.Check())
}

// TestUnmappable: where files cannot be mapped, changes survive once they are synced.
func TestUnmappable(t *testing.T) {
	fs := unmappable{vfs.NewMem()}
	s := mustOpen(t, fs, logged())
	mustAdd(t, s, "a", 5, "x")
	require.NoError(t, s.Sync())
	mustAdd(t, s, "b", 5, "x")
	killed := mustOpen(t, unmappable{fs.Clone()}, logged())
	require.Equal(t, map[string]string{"a": "5 x"}, contents(t, killed))
	require.NoError(t, s.Close())
	require.Len(t, contents(t, mustOpen(t, fs, logged())), 2)
}

// unmappable is a file system that cannot map files.
type unmappable struct{ *vfs.Mem }

func (unmappable) Map(string, int) (*vfs.Map, error) { return nil, errors.ErrUnsupported }
