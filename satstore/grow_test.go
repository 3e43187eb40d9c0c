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
	t.Parallel()
	fs, o := vfs.NewMem(), logged()
	o.Buffer, o.test.inline = 1<<20, true // a checkpoint saves one page, and has more than one new one
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
