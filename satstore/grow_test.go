package satstore

import (
	"fmt"
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
