package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A scene is a store with one record, "old", due in slot 1, which is the current one, and what
// happens there.
type scene struct {
	t *testing.T
	s *Store
	r *Record // the one that was handed out last
}

func (c *scene) handOut() {
	c.t.Helper()
	require.Len(c.t, dueIDs(c.t, c.s, func(r *Record) { c.r = r }), 1)
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
	require.NoError(c.t, c.r.Reschedule(slot, append(c.r.Data, " visited"...)))
}

func (c *scene) advance() {
	c.t.Helper()
	require.NoError(c.t, c.s.Advance())
}

// TestMessages says by the sentence what becomes of messages, whatever happens to their record. The
// same must come out of the log.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		play func(c *scene)
		want string // slot and data, or nothing if the record is gone
	}{
		{"a message is merged when the record is looked at", func(c *scene) {
			c.update("a")
		}, "1 old+a"},
		{"messages are merged in their order", func(c *scene) {
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
		{"only those that came while it was out wait", func(c *scene) {
			c.update("a")
			c.handOut()
			c.update("b")
			c.giveBack(5)
		}, "5 old+a visited+b"},
		{"what waits is merged the next time", func(c *scene) {
			c.handOut()
			c.update("a")
			c.giveBack(2)
			c.advance()
			c.handOut()
			c.giveBack(3)
		}, "3 old visited+a visited"},
		{"a message for a far slot waits for the slot", func(c *scene) {
			c.handOut()
			c.giveBack(2000)
			c.update("a")
		}, "2000 old visited+a"},
		{"a message outlives the slot that is not worked off", func(c *scene) {
			c.update("a")
			c.advance()
			c.advance()
			c.update("b")
		}, "1 old+a+b"},
		{"a deleted record is gone at once", func(c *scene) {
			c.delete()
		}, ""},
		{"a deletion overrides messages before it", func(c *scene) {
			c.update("a")
			c.delete()
		}, ""},
		{"a deleted record is not handed out", func(c *scene) {
			c.delete()
			require.Empty(c.t, dueIDs(c.t, c.s, nil))
		}, ""},
		{"a record that is deleted while it is out goes when it is back", func(c *scene) {
			c.handOut()
			c.delete()
			c.giveBack(5)
		}, ""},
		{"a deleted id can be added again", func(c *scene) {
			c.delete()
			mustAdd(c.t, c.s, "id", 7, "new")
		}, "7 new"},
		{"and has no message of its former life", func(c *scene) {
			c.update("a")
			c.delete()
			mustAdd(c.t, c.s, "id", 7, "new")
			c.update("b")
		}, "7 new+b"},
		{"nor the record that was out", func(c *scene) {
			c.handOut()
			c.delete()
			mustAdd(c.t, c.s, "id", 7, "new")
			c.giveBack(5)
		}, "7 new"},
		{"a record given back for good is gone with its messages", func(c *scene) {
			c.handOut()
			c.update("a")
			require.NoError(c.t, c.r.Delete())
		}, ""},
		{"its id can be added again", func(c *scene) {
			c.handOut()
			require.NoError(c.t, c.r.Delete())
			mustAdd(c.t, c.s, "id", 3, "new")
		}, "3 new"},
		{"a detached record is like any other", func(c *scene) {
			c.handOut()
			c.r.Detach()
			c.update("a")
			c.giveBack(5)
		}, "5 old visited+a"},
		{"a record that comes back late goes to the next slot", func(c *scene) {
			c.handOut()
			c.advance()
			c.advance()
			c.giveBack(2)
		}, "4 old visited"},
		{"a slot beyond all bounds is the last one", func(c *scene) {
			c.handOut()
			c.giveBack(1 << 62)
		}, fmt.Sprint(int64(maxSlot), " old visited")},
		{"an id that was changed in place does not matter", func(c *scene) {
			c.handOut()
			copy(c.r.ID, "XX")
			c.giveBack(5)
		}, "5 old visited"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			fs, o := vfs.NewMem(), small(Options{})
			o.Start = 1
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

// TestUpdateBatch leaves many messages at once, in any order of ids, some of which are unknown or
// come several times.
func TestUpdateBatch(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	want := map[string]string{}
	for i := range 300 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1000, "x")
		want[id] = "1000 x"
	}
	require.NoError(t, s.checkpointNow()) // so that ids are in a file
	var batch []Message
	known := 0
	for i := range 700 {
		id := fmt.Sprint("https://a.test/", i*7%500)
		batch = append(batch, Message{id, fmt.Append(nil, i)})
		if want[id] != "" {
			want[id] += fmt.Sprint("+", i)
			known++
		}
	}
	left, err := s.UpdateBatch(batch)
	require.NoError(t, err)
	require.Equal(t, known, left)
	require.Equal(t, want, contents(t, s))
	_, err = s.UpdateBatch([]Message{{"https://a.test/1", nil}, {"x", make([]byte, MaxData+1)}})
	require.ErrorIs(t, err, ErrSize)
	require.Equal(t, want, contents(t, s), "a batch is refused as a whole")
	require.NoError(t, s.Close())
	_, err = s.UpdateBatch(batch)
	require.ErrorIs(t, err, ErrClosed)
	basic := mustOpen(t, vfs.NewMem(), Options{Start: 1, Mode: Basic})
	_, err = basic.UpdateBatch(nil)
	require.ErrorIs(t, err, ErrNoIndex)
	require.NoError(t, basic.Close())
}
