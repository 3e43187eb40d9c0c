package satstore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// firstOf returns the error that a walk yields.
func firstOf[T any](walk func(func(T, error) bool)) (err error) {
	for _, err = range walk {
		break
	}
	return err
}

// TestAllSayThatTheStoreIsClosed: also those that would read a file first, which is closed too.
func TestAllSayThatTheStoreIsClosed(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Start: 1, Commit: -1})
	require.NoError(t, err)
	mustAdd(t, s, "out", 1, "x")
	mustAdd(t, s, "deleted", 1, "x")
	mustAdd(t, s, "there", 5, "x")
	held := map[string]*Record{}
	dueIDs(t, s, func(r *Record) { held[string(r.ID)] = r })
	require.NoError(t, s.Close())
	for name, do := range map[string]func() error{
		"Add of a known id": func() error { _, err := s.Add("there", 5, nil); return err },
		"Add of a new id":   func() error { _, err := s.Add("new", 5, nil); return err },
		"AddBatch": func() error {
			_, err := s.AddBatch([]Item{{"new", 5, nil}, {"there", 5, nil}})
			return err
		},
		"Update":               func() error { return s.Update("there", nil) },
		"Update of no record":  func() error { return s.Update("new", nil) },
		"UpdateBatch":          func() error { _, err := s.UpdateBatch([]Message{{"there", nil}}); return err },
		"Delete":               func() error { return s.Delete("there") },
		"Get":                  func() error { _, err := s.Get("there"); return err },
		"Get of no record":     func() error { _, err := s.Get("new"); return err },
		"Scan":                 func() error { return firstOf(s.Scan()) },
		"Due":                  func() error { return firstOf(s.Due(t.Context())) },
		"Advance":              s.Advance,
		"Sync":                 s.Sync,
		"Check":                s.Check,
		"Close":                s.Close,
		"Backup":               func() error { return s.Backup(filepath.Join(t.TempDir(), "copy")) },
		"Reschedule":           func() error { return held["out"].Reschedule(9, nil) },
		"Delete of one's own":  func() error { return held["deleted"].Delete() },
		"Reschedule once more": func() error { return held["out"].Reschedule(9, nil) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			require.ErrorIs(t, do(), ErrClosed)
		})
	}
	held["out"].Detach() // has no error to return, and must not panic
	require.EqualValues(t, 3, s.Stats().Records, "what was so at the end can still be asked for")
	require.EqualValues(t, 1, s.Now())
}

// TestReadOnly: when the disk is full, all that changes something says so and why, all that reads
// goes on, and a Sync that works ends it.
func TestReadOnly(t *testing.T) {
	full := errors.New("disk is full")
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "due", 1000, "old")
	mustAdd(t, s, "there", 2000, "old")
	require.NoError(t, s.Sync())
	var held *Record
	dueIDs(t, s, func(r *Record) { held = r })
	was := contents(t, s)
	fs.FailAt(fs.Steps()+1, full)
	mustAdd(t, s, "new", 2000, "x") // goes to memory
	require.ErrorIs(t, s.Sync(), full)
	fs.FailAt(0, nil)
	for name, do := range map[string]func() error{
		"Add":         func() error { _, err := s.Add("newer", 5, nil); return err },
		"Update":      func() error { return s.Update("there", nil) },
		"UpdateBatch": func() error { _, err := s.UpdateBatch([]Message{{"there", nil}}); return err },
		"Delete":      func() error { return s.Delete("there") },
		"Advance":     s.Advance,
		"Due":         func() error { return firstOf(s.Due(t.Context())) },
		"Reschedule":  func() error { return held.Reschedule(1005, nil) },
		"Record":      func() error { return held.Delete() },
	} {
		err := do()
		require.ErrorIs(t, err, ErrReadOnly, name)
		require.ErrorIs(t, err, full, "%s must say why", name)
	}
	was["new"] = "2000 x"
	require.Equal(t, was, contents(t, s), "it can be read")
	item, err := s.Get("there")
	require.NoError(t, err)
	require.Equal(t, Item{"there", 2000, []byte("old")}, item)
	added, err := s.Add("there", 5, nil)
	require.NoError(t, err, "a known id changes nothing")
	require.False(t, added)

	require.NoError(t, s.Sync())
	require.NoError(t, held.Reschedule(1005, []byte("visited")), "it was not given back by the failure")
	was["due"] = "1005 visited"
	require.Equal(t, was, contents(t, mustOpen(t, fs.Clone(), o)))
	require.NoError(t, s.Check())
}

// TestOpenedTwice: the second one is refused, until the first one is closed.
func TestOpenedTwice(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir, Options{Start: 1})
	require.NoError(t, err)
	_, err = Open(dir, Options{Start: 1})
	require.ErrorIs(t, err, ErrLocked)
	_, err = Repair(dir, t.TempDir(), Options{})
	require.ErrorIs(t, err, vfs.ErrLocked, "nor can it be repaired meanwhile")
	mustAdd(t, first, "a", 1, "first is not harmed")
	require.NoError(t, first.Close())
	second, err := Open(dir, Options{Start: 1})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1 first is not harmed"}, contents(t, second))
	require.NoError(t, second.Close())
}

// TestSizes: what is documented as the largest fits, one byte more does not, and nothing of it
// stays behind.
func TestSizes(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1}
	s := mustOpen(t, fs, o)
	id, data := strings.Repeat("i", MaxID), strings.Repeat("d", MaxData)
	mustAdd(t, s, id, 1, data)
	for _, item := range []Item{
		{ID: "", Slot: 1}, {ID: id + "i", Slot: 1}, {ID: "x", Slot: 1, Data: []byte(data + "d")},
	} {
		_, err := s.Add(item.ID, item.Slot, item.Data)
		require.ErrorIs(t, err, ErrSize, "id of %d bytes, data of %d", len(item.ID), len(item.Data))
	}
	require.NoError(t, s.Update(id, []byte(data)))
	require.ErrorIs(t, s.Update(id, []byte(data+"d")), ErrSize)
	require.Len(t, dueIDs(t, s, func(r *Record) {
		require.ErrorIs(t, r.Reschedule(2, []byte(data+"d")), ErrSize)
		require.NoError(t, r.Reschedule(2, []byte(data)), "a refusal does not give it back")
	}), 1)
	require.NoError(t, s.Update(id, nil), "no message at all is one")
	mustAdd(t, s, "x", 2, "")
	want := map[string]string{id: "2 ", "x": "2 "}
	require.Equal(t, want, contents(t, s))
	require.Equal(t, want, contents(t, mustOpen(t, fs.Clone(), o)), "after a kill")
	require.NoError(t, s.Check())
}

// TestBasicHasNoIndex: what needs one is refused, what does not works, and ids may come twice.
func TestBasicHasNoIndex(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Start: 1, Commit: -1, Mode: Basic})
	n, err := s.AddBatch([]Item{{"a", 1, nil}, {"a", 1, nil}})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.ErrorIs(t, s.Update("a", nil), ErrNoIndex)
	require.ErrorIs(t, s.Delete("a"), ErrNoIndex)
	_, err = s.Get("a")
	require.ErrorIs(t, err, ErrNoIndex)
	require.Equal(t, []string{"a", "a"}, dueIDs(t, s, func(r *Record) {
		if s.Stats().Records == 2 {
			require.NoError(t, r.Delete())
		} else {
			require.NoError(t, r.Reschedule(4, []byte("kept")))
		}
	}))
	require.Equal(t, map[string]string{"a": "4 kept"}, contents(t, s))
	require.NoError(t, s.Check())
}

// TestRecordsAreGivenBackOnce: whatever the first way was, and whatever the second one is.
func TestRecordsAreGivenBackOnce(t *testing.T) {
	ways := map[string]func(*Record) error{
		"Reschedule": func(r *Record) error { return r.Reschedule(3, []byte("x")) },
		"Delete":     (*Record).Delete,
		"detached":   func(r *Record) error { r.Detach(); return r.Reschedule(3, []byte("x")) },
	}
	for first, giveBack := range ways {
		for second, again := range ways {
			t.Run(first+"-"+second, func(t *testing.T) {
				s := mustOpen(t, vfs.NewMem(), Options{Start: 1, Commit: -1})
				mustAdd(t, s, "a", 1, "x")
				mustAdd(t, s, "other", 1, "x") // keeps the block
				held := map[string]*Record{}
				dueIDs(t, s, func(r *Record) { held[string(r.ID)] = r })
				require.NoError(t, giveBack(held["a"]))
				was, stats := contents(t, s), s.Stats()
				require.ErrorIs(t, again(held["a"]), ErrDone)
				require.Equal(t, was, contents(t, s))
				require.Equal(t, stats.Out, s.Stats().Out)
				require.NoError(t, held["other"].Reschedule(3, nil))
				require.NoError(t, s.Check())
			})
		}
	}
}

// TestACorruptErrorSaysWhere: by errors.Is what it is, by errors.As in which file.
func TestACorruptErrorSaysWhere(t *testing.T) {
	err := error(disk.Corrupt("buckets", 512, "wrong checksum"))
	require.ErrorIs(t, err, ErrCorrupt)
	require.EqualError(t, err, "satstore: buckets: byte 512: wrong checksum")

	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1}
	s := mustOpen(t, fs, o)
	require.NoError(t, s.Close())
	fs.Flip(checkpointName, 3, 1)
	_, err = open(fs, o)
	var where *CorruptError
	require.ErrorAs(t, err, &where)
	require.Equal(t, checkpointName, where.File)
	require.ErrorIs(t, err, ErrCorrupt)
}

// TestNoShards: a store of no directories has no place for anything, and says so when it is opened.
func TestNoShards(t *testing.T) {
	_, err := OpenShards(nil, Options{})
	require.Error(t, err)
}
