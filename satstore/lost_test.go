package satstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// lostRecords returns a store whose bucket index has several pages and which has lost 200 records in
// a split, numbered from 2. The checkpoint that follows saves another page than that of the lost
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
	require.True(t, lossy.dead)
	require.EqualValues(t, 200, s.lost.Records)
	return fs, s, number
}

// TestLostRecordsLeadNowhere: after a crash, the ids of records that a split has lost must not lead
// to another bucket, although the page of the bucket index with them was saved before the loss.
// Deleting them would otherwise count live records as gone: the store would drop these with their
// bucket, or write a checkpoint that it cannot read.
func TestLostRecordsLeadNowhere(t *testing.T) {
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
	want := datasOf(t, s)
	abandon(s)
	fs = fs.Clone()
	s = mustOpen(t, fs, s.o)
	for i := range 200 {
		require.NoError(t, s.Delete(fmt.Sprint("lost", i)))
	}
	require.Zero(t, s.lost)
	require.Equal(t, want, datasOf(t, s))
	require.NoError(t, s.Check())
	// Records that stay out are due again after Close.
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

// TestChangesOfLostRecords: a store that has lost records and was killed deletes them, in Open and Repair,
// too, if such a change is in the log, and takes no messages for them. Check still compares the ids with the
// records.
func TestChangesOfLostRecords(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		fs, s, _ := lostRecords(t, moved)
		want := datasOf(t, s)
		mustAdd(t, s, "more", 900_000, "")
		require.NoError(t, s.checkpointNow())
		require.NoError(t, s.Delete("lost5"))
		require.ErrorIs(t, s.Update("lost6", []byte("m")), ErrCorrupt)
		require.NoError(t, s.Sync())
		abandon(s)
		done, err := repair(fs.Clone(), vfs.NewMem(), s.o)
		require.NoError(t, err)
		require.EqualValues(t, len(want)+1, done.Records)
		require.EqualValues(t, 199, done.Lost)

		s = mustOpen(t, fs.Clone(), s.o)
		require.EqualValues(t, 199, s.lost.Records)
		require.Len(t, datasOf(t, s), len(want)+1)
		for i := range 200 {
			err := s.Update(fmt.Sprint("lost", i), []byte("m"))
			require.ErrorIs(t, err, ErrUnknown)
			require.Equal(t, i != 5, errors.Is(err, ErrCorrupt))
		}
		require.Len(t, unjoin(s.Check()), 1, "that there was a loss")
		s.ids.Delete(idset.KeyOf("fill7"))
		require.Len(t, unjoin(s.Check()), 2)
		s.ids.Put(idset.Key{1}, 3)
		require.Len(t, unjoin(s.Check()), 2)
	}
}

func unjoin(err error) []error {
	joined, _ := err.(interface{ Unwrap() []error })
	return joined.Unwrap()
}

// TestRetiredNumbers: the number of a bucket with lost records is reused once no page of the bucket
// index has it, and the first checkpoint after the loss saves those that had it, even after one that
// has failed.
func TestRetiredNumbers(t *testing.T) {
	t.Parallel()
	fs, s, number := lostRecords(t, false)
	require.Equal(t, []uint16{number}, s.retired)
	require.NotContains(t, s.spare, number)
	fs.FailAt(fs.Steps()+3, errors.New("bad disk"))
	require.Error(t, s.checkpointNow())
	fs.FailAt(0, nil)
	require.NoError(t, s.Sync())
	require.Empty(t, s.retired)
	require.Contains(t, s.spare, number)
	abandon(s)
	s = mustOpen(t, fs.Clone(), s.o)
	require.EqualValues(t, lostNumber, s.places.get(2))
	require.Equal(t, uint64(200), s.lost.Records)
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
