package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestRecoveryOfAGrowingStore: after a kill, Open reads what was written since the pages of the bucket
// index were saved, also while each checkpoint has pages that were never saved.
func TestRecoveryOfAGrowingStore(t *testing.T) {
	if testing.Short() {
		t.Skip("adds 900,000 records")
	}
	t.Parallel()
	fs, o := vfs.NewMem(), logged()
	o.Buffer, o.test.work = 1<<20, workNow // a checkpoint saves one page, and has more than one new one
	s := mustOpen(t, fs, o)
	items := make([]Item, 1000)
	for n := range 900 {
		for i := range items {
			items[i] = Item{ID: fmt.Sprint(n*len(items) + i), At: at(int64(100 + i%9))}
		}
		_, err := s.AddBatch(items)
		require.NoError(t, err)
	}
	require.Greater(t, s.Stats().Checkpoints, int64(5))
	size := s.Stats().DiskSize
	abandon(s)
	killed := mustOpen(t, fs.Clone(), o)
	require.Less(t, killed.Stats().BytesRead, 2*size/5)
	require.NoError(t, killed.Check())
	require.NoError(t, killed.Close())
}

// TestRecoveryAfterKills: kills before all pages of the bucket index have had their turn leave none of them
// unsaved for long, so Open reads no more each time.
func TestRecoveryAfterKills(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20}) // a checkpoint saves one page
	s := mustOpen(t, fs, o)
	items := make([]Item, 2*pageNumbers+100)
	for i := range items {
		items[i] = Item{ID: fmt.Sprint(i), At: at(9000)}
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	for round := range 6 {
		abandon(s)
		fs = fs.Clone()
		s = mustOpen(t, fs, o)
		for page := range 3 {
			require.NoError(t, s.Delete(fmt.Sprint(page*pageNumbers+round)))
		}
		require.NoError(t, s.checkpointNow())
	}
	for _, p := range s.places.pages {
		require.Less(t, s.generation-p.saved.Generation, uint32(5))
	}
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestDeletedRecordsTakeNoMemory: the bucket index has no pages for records that are gone, and the
// places of saved pages are free again.
func TestDeletedRecordsTakeNoMemory(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), logged()
	o.Buffer, o.test.work = 1<<20, workNow
	s := mustOpen(t, fs, o)
	pages := func() (n int) {
		for _, p := range s.places.pages {
			if p.numbers != nil {
				n++
			}
		}
		return n
	}
	items := make([]Item, 1000)
	for n := range 200 {
		for i := range items {
			items[i] = Item{ID: fmt.Sprint(n*len(items) + i), At: at(int64(2 + n/100))}
		}
		_, err := s.AddBatch(items)
		require.NoError(t, err)
	}
	_, err := s.Add("last", at(1000), nil)
	require.NoError(t, err)
	require.NoError(t, s.checkpointNow())
	require.Equal(t, 4, pages())
	for slot := int64(2); slot < 4; slot++ {
		for r, err := range s.Due(t.Context(), at(slot)) {
			require.NoError(t, err)
			require.NoError(t, r.Delete())
		}
		killed := mustOpen(t, fs.Clone(), o)
		require.NoError(t, killed.Check())
		require.NoError(t, killed.Close())
	}
	require.Equal(t, 1, pages())
	require.NoError(t, s.checkpointNow())
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	require.Equal(t, 1, pages())
	require.NoError(t, s.Check())
	require.Len(t, contents(t, s), 1)
	require.NoError(t, s.Close())
}

// TestDeleteReadsNothing: a record that is out is deleted without a look at the id index.
func TestDeleteReadsNothing(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfs.NewMem(), small(Options{Buffer: 1 << 20}))
	for _, t := range s.all() { // they read, too
		t.run = func() error { return nil }
	}
	for i := range 500 {
		mustAdd(t, s, fmt.Sprint(i), 1001, "")
	}
	require.NoError(t, s.checkpointNow())
	var out []*Record
	for r, err := range s.Due(t.Context(), at(1001)) {
		require.NoError(t, err)
		out = append(out, r)
	}
	require.Len(t, out, 500)
	before := s.Stats().BytesRead
	for i, r := range out {
		switch i % 3 {
		case 1:
			require.NoError(t, s.Delete(r.ID))
		case 2:
			require.NoError(t, s.Delete(r.ID))
			mustAdd(t, s, r.ID, 1500, "again")
		}
	}
	looked := s.Stats().BytesRead
	require.Greater(t, looked, before)
	for _, r := range out {
		require.NoError(t, r.Delete())
	}
	require.Equal(t, looked, s.Stats().BytesRead)
	require.NoError(t, s.Check())
	require.Len(t, contents(t, s), 500/3)
}

// TestDueRecordsThatComeAndGo: a record that is due, deleted by its id and added again takes no more
// space each time, whether Due reads its unit in between or not, and while another record stays.
func TestDueRecordsThatComeAndGo(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		fs, o := vfs.NewMem(), small(Options{Buffer: 64 << 10})
		s := mustOpen(t, fs, o)
		mustAdd(t, s, "stays", 1000, "x")
		for i := range 3000 {
			mustAdd(t, s, "a", 1000, strings.Repeat("x", 1000))
			var out *Record
			if read && i%10 == 0 {
				for r, err := range s.Due(t.Context(), at(1000)) {
					require.NoError(t, err)
					if r.ID == "a" {
						out = r
					}
				}
			}
			require.NoError(t, s.Delete("a"))
			if out != nil {
				require.NoError(t, out.Delete())
			}
			if i%500 == 0 {
				killed := mustOpen(t, fs.Clone(), o)
				require.Equal(t, map[string]string{"stays": "x"}, datasOf(t, killed))
				require.NoError(t, killed.Check())
				require.NoError(t, killed.Close())
			}
		}
		if read { // the deleted ones
			for _, err := range s.Due(t.Context(), at(1000)) {
				require.NoError(t, err)
			}
		}
		for range 2 {
			require.NoError(t, s.checkpointNow())
		}
		stats := s.Stats()
		require.Less(t, stats.DiskSize-stats.DiskFree, int64(1<<20), "of 3 MB")
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		s = mustOpen(t, fs, o)
		require.Equal(t, map[string]string{"stays": "x"}, datasOf(t, s))
	}
}

// TestDeletesDuringASplit: a bucket most of whose records were deleted while another one was being
// split is rewritten after that.
func TestDeletesDuringASplit(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfs.NewMem(), small(Options{Buffer: 1 << 20}))
	for i := range 600 {
		mustAdd(t, s, fmt.Sprint("far", i), 5000, "x")
	}
	mustAdd(t, s, "near", 1060, "x")
	s.o.test.work = nil // so that the split stays
	for s.split == nil {
		_, err := s.advanceTo(t.Context(), s.reach(1060))
		require.NoError(t, err)
	}
	for i := range 599 {
		require.NoError(t, s.Delete(fmt.Sprint("far", i)))
	}
	far := s.bucketOf(599)
	s.o.test.work = workNow
	require.NoError(t, s.Delete("near"))
	mustAdd(t, s, "near", 1060, "x")
	require.True(t, far.dead)
	require.Less(t, s.bucketOf(599).records.Count(), uint64(2))
	require.NoError(t, s.Check())
}
