package satstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// lostRecords returns a store whose bucket index has several pages and which has lost 200 records in
// a split. The checkpoint that follows saves another page than that of the lost records.
func lostRecords(t *testing.T) (fs *vfs.Mem, s *Store, number uint16) {
	fs = vfs.NewMem()
	s = mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
	var items []Item
	for i := range 200 {
		items = append(items, Item{fmt.Sprint("lost", i), at(1060), []byte("data")})
	}
	for i := range 3 * pageNumbers {
		items = append(items, Item{fmt.Sprint("fill", i), at(900_000), nil})
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	for range 5 { // all pages are saved
		require.NoError(t, s.checkpointNow())
	}
	var lossy *bucket
	for b := range s.buckets {
		if b.start <= 1060 && 1060 < b.start+b.width {
			lossy = b
		}
	}
	for _, e := range lossy.records.Extents() {
		fs.Flip(extent.Name, e.Offset()+40, 0)
	}
	// The next page to save is the third one.
	require.NoError(t, s.Delete("fill70000"))
	require.NoError(t, s.checkpointNow())
	require.NoError(t, s.Delete("fill140000"))
	require.NoError(t, s.Delete("fill190000"))
	require.NoError(t, s.pass(1058))
	require.True(t, lossy.dead)
	require.EqualValues(t, 200, s.lost.Records)
	return fs, s, lossy.number
}

// TestLostRecordsLeadNowhere: after a crash, the ids of records that a split has lost must not lead
// to another bucket, although the page of the bucket index with them was saved before the loss.
// Deleting them would otherwise count live records as gone: the store would drop these with their
// bucket, or write a checkpoint that it cannot read.
func TestLostRecordsLeadNowhere(t *testing.T) {
	t.Parallel()
	for _, live := range []int{9, 199} {
		for _, checkpoints := range []int{1, 5} {
			t.Run(fmt.Sprint("live=", live, "/checkpoints=", checkpoints), func(t *testing.T) {
				fs, s, number := lostRecords(t)
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
			})
		}
	}
}

// TestRetiredNumbers: the number of a bucket with lost records is reused once all pages of the
// bucket index have been saved, also after a crash, and despite a checkpoint that fails.
func TestRetiredNumbers(t *testing.T) {
	t.Parallel()
	fs, s, number := lostRecords(t)
	require.Len(t, s.retired, 1)
	require.NoError(t, s.checkpointNow()) // saves another page
	require.Len(t, s.retired, 1)
	require.NotContains(t, s.spare, number)
	fs.FailAt(fs.Steps()+3, errors.New("bad disk"))
	require.Error(t, s.checkpointNow())
	fs.FailAt(0, nil)
	require.Len(t, s.retired, 1)
	abandon(s)
	s = mustOpen(t, fs.Clone(), s.o)
	require.Zero(t, s.places.get(0))
	for range 5 {
		require.NoError(t, s.checkpointNow())
	}
	require.Empty(t, s.retired)
	require.Contains(t, s.spare, number)
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
