package satstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// lostRecords returns a store whose bucket index has several pages and in which a split has set 200 records
// aside, numbered from 2. The checkpoint that follows saves another page than that of the lost
// records. If moved, a visit has moved them since their page was saved. It returns the number of the
// bucket that the saved page has for them.
func lostRecords(t *testing.T, moved bool) (fs *vfs.Mem, s *Store, number uint16) {
	fs = vfs.NewMem()
	s = mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
	mustAdd(t, s, "x", 1000, "") // the number of its bucket will be free
	mustAdd(t, s, "far", 900_000, "")
	due(t, s, 1000, func(r *Record) { require.NoError(t, r.Delete()) })
	var items []Item
	slot := int64(1060)
	if moved {
		slot = 1001
	}
	for i := range 200 {
		items = append(items, Item{fmt.Sprint("lost", i), at(slot), []byte("data")})
	}
	for i := range 3 * pageNumbers {
		items = append(items, Item{fmt.Sprint("fill", i), at(900_000), nil})
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	for range 5 { // all pages are saved
		require.NoError(t, s.checkpointNow())
	}
	number = s.places.get(2)
	// The next page to save is the third one, and then the fourth.
	require.NoError(t, s.Delete("fill70000"))
	require.NoError(t, s.checkpointNow())
	require.NoError(t, s.Delete("fill140000"))
	require.NoError(t, s.Delete("fill190000"))
	if moved {
		for r, err := range s.Due(t.Context(), at(1001)) {
			require.NoError(t, err)
			require.NoError(t, r.Reschedule(at(1060), r.Data))
		}
		require.NoError(t, s.checkpointNow())
	}
	lossy := s.bucketOf(2)
	require.Equal(t, moved, lossy.number != number)
	for _, e := range lossy.records.Extents() {
		fs.Flip(extent.Name, e.Offset()+40, 0)
	}
	require.NoError(t, s.pass(1058))
	require.Equal(t, []*bucket{lossy}, s.aside)
	require.EqualValues(t, 200, lossy.left())
	return fs, s, number
}

// TestRecordsAsideLeadNowhere: after a split has set records aside, a change of one of them harms no other
// record, and its bucket number is not used again until the last one is deleted. That holds after a kill,
// too, unless the blocks are newer than the saved bucket index. Then Open refuses, and Repair keeps the others.
func TestRecordsAsideLeadNowhere(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		for live, checkpoints := range map[int]int{9: 1, 199: 5} {
			name := fmt.Sprint("moved=", moved, "/live=", live, "/checkpoints=", checkpoints)
			t.Run(name, func(t *testing.T) { requireNoLead(t, moved, live, checkpoints) })
		}
	}
}

func requireNoLead(t *testing.T, moved bool, live, checkpoints int) {
	fs, s, number := lostRecords(t, moved)
	slot := nowOf(s) + 1
	for ; s.numbers[number] == nil && slot < 1120; slot++ { // takes every number that is free
		mustAdd(t, s, fmt.Sprint("one", slot), slot, "")
	}
	for i := range live {
		mustAdd(t, s, fmt.Sprint("live", i), slot-1, "live")
	}
	for range checkpoints {
		require.NoError(t, s.checkpointNow())
	}
	want := contentsOf(s)
	abandon(s)
	fs = fs.Clone()
	s, err := open(fs, s.o)
	if err != nil {
		require.True(t, moved)
		require.ErrorIs(t, err, ErrCorrupt)
		to := vfs.NewMem()
		done, err := repair(fs, to, small(Options{Buffer: 1 << 20}))
		require.NoError(t, err)
		require.EqualValues(t, 200, done.Lost)
		repaired := mustOpen(t, to, small(Options{}))
		require.Equal(t, want, contentsOf(repaired))
		require.NoError(t, repaired.Check())
		return
	}
	require.Len(t, s.aside, 1)
	for i := range 200 {
		require.ErrorIs(t, s.Update(fmt.Sprint("lost", i), nil), ErrCorrupt)
		require.NoError(t, s.Delete(fmt.Sprint("lost", i)))
	}
	require.Empty(t, s.aside)
	require.Equal(t, want, datasOf(t, s))
	require.NoError(t, s.Check())
	for _, err := range s.Due(t.Context(), at(slot+200)) {
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, s.o)
	require.Equal(t, want, datasOf(t, s))
	require.NoError(t, s.Check())
}

// TestAsideIsReadable: what a split could not read is not given up. It is in the store and in the copy of
// Repair once it can be read, also after a kill, and each Open and Check says that it is aside.
func TestAsideIsReadable(t *testing.T) {
	t.Parallel()
	fs, s, _ := lostRecords(t, false)
	mustAdd(t, s, "more", 900_000, "")
	require.NoError(t, s.checkpointNow())
	require.NoError(t, s.Delete("lost5"))
	require.NoError(t, s.Sync())
	abandon(s)
	for again := range 2 {
		for _, e := range s.aside[0].records.Extents() {
			fs.Flip(extent.Name, e.Offset()+40, 0)
		}
		killed := mustOpen(t, fs.Clone(), s.o)
		want := 3*pageNumbers + 2 - 3 // filled, and far and more, without three that were deleted
		if again == 0 {
			want += 199
			require.Len(t, datasOf(t, killed), want)
		}
		require.Len(t, unjoin(killed.Check()), 1+again)
		_, damage := take(t, killed, 1059)
		require.Len(t, damage, 1)
		require.NoError(t, killed.Close())
		done, err := repair(fs.Clone(), vfs.NewMem(), s.o)
		require.NoError(t, err)
		require.EqualValues(t, want, done.Records)
		require.EqualValues(t, 199*again, done.Lost)
	}
}

// flipIn damages a block of each extent of a part.
func flipIn(fs *vfs.Mem, p *extent.Part) {
	for _, e := range p.Extents() {
		fs.Flip(extent.Name, e.Offset()+33, 0)
	}
}

func unjoin(err error) []error {
	joined, _ := err.(interface{ Unwrap() []error })
	return joined.Unwrap()
}

// TestDamageAfterAKill: Open reads the blocks that are newer than the saved bucket index. If one is
// damaged, it refuses, and Repair keeps everything else.
func TestDamageAfterAKill(t *testing.T) {
	t.Parallel()
	for _, messages := range []bool{false, true} {
		fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
		s := mustOpen(t, fs, o)
		var items []Item
		for i := range pageNumbers + 100 {
			items = append(items, Item{fmt.Sprint("far", i), at(6000), nil})
		}
		_, err := s.AddBatch(items)
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, s.checkpointNow())
		}
		for i := range 300 {
			mustAdd(t, s, fmt.Sprint("near", i), 2000, "x")
		}
		if messages {
			require.NoError(t, s.checkpointNow())
			require.NoError(t, s.Delete("far5"))
			require.NoError(t, s.Delete("near5"))
		}
		s.places.turn = 0 // so that the next checkpoint saves the first page
		s.places.pages[0].changed = true
		require.NoError(t, s.checkpointNow())
		mustAdd(t, s, "logged", 2000, "x")
		require.NoError(t, s.Sync())
		part := &s.bucketOf(pageNumbers + 107).records
		if messages {
			part = &s.bucketOf(7).messages
		}
		extents := part.Extents()
		abandon(s)
		fs = fs.Clone()
		intact := contentsOf(mustOpen(t, fs.Clone(), o))
		fs.Flip(extent.Name, extents[len(extents)-1].Offset()+33, 0)
		_, err = open(fs, o)
		require.ErrorIs(t, err, ErrCorrupt)
		to := vfs.NewMem()
		done, err := repair(fs, to, o)
		require.NoError(t, err)
		repaired := mustOpen(t, to, o)
		got := contentsOf(repaired)
		require.Contains(t, got, "logged")
		require.Len(t, got, len(intact)-int(done.Lost))
		_, revived := got["far5"]
		require.Equal(t, !messages, revived, "it was deleted, and the ids know")
		require.Equal(t, !messages, done.Lost > 0)
	}
}

// TestUnsoundCheckpoint: a state that Open would refuse never replaces a checkpoint.
func TestUnsoundCheckpoint(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := mustOpen(t, fs, small(Options{}))
	mustAdd(t, s, "a", 1060, "data")
	require.NoError(t, s.Sync())
	want := datasOf(t, s)
	s.numbers[s.places.get(0)].gone = 2 // as after damage in memory
	require.ErrorIs(t, s.Close(), ErrCorrupt)
	s = mustOpen(t, fs, s.o)
	require.Equal(t, want, datasOf(t, s))
	require.NoError(t, s.Check())
}

// TestGetOfHiddenRecords: those that a split could not read are unknown, and the error says why; those beside
// them are found.
func TestGetOfHiddenRecords(t *testing.T) {
	fs, o := damagedSplit(t, false)
	s := mustOpen(t, fs, o)
	for slot := int64(1001); s.stats.Split == 0; slot++ {
		require.NoError(t, s.pass(slot))
	}
	can := map[string]bool{}
	for item, err := range s.Scan() {
		if err == nil {
			can[item.ID] = true
		}
	}
	for i := range 300 {
		id := fmt.Sprint("https://a.test/", i)
		_, err := s.Get(id)
		if can[id] {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrUnknown)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	require.Less(t, len(can), 300)
	require.NoError(t, s.Close())
}
