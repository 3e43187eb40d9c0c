package satstore

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestAddsWaitForASlowSync: while the disk needs long for the sync of a checkpoint, new ids take bounded
// memory, and visits go on.
func TestAddsWaitForASlowSync(t *testing.T) {
	t.Parallel()
	fs, hold := &faultyFS{Mem: vfs.NewMem()}, make(chan struct{})
	var slow atomic.Bool
	fs.before = func(what, name string) error {
		if slow.Load() && what == "sync" && name == "buckets" {
			<-hold
		}
		return nil
	}
	o := logged()
	o.Buffer, o.test.pending = 256<<10, 256<<10
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "out", 1, "x")
	var out *Record
	due(t, s, 1, func(r *Record) { out = r })
	slow.Store(true)
	const ids = 40_000
	added := make(chan error, 1)
	go func() {
		for i := range ids {
			if _, err := s.Add(fmt.Sprint(i), at(5), nil); err != nil {
				added <- err
				return
			}
		}
		added <- nil
	}()
	inMemory := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.idChanges * idChange
	}
	for last := int64(-1); last == 0 || inMemory() != last; { // until they wait
		last = inMemory()
		time.Sleep(100 * time.Millisecond)
	}
	require.LessOrEqual(t, inMemory(), 2*o.Buffer+idChange)
	require.Empty(t, added)
	require.NoError(t, out.Reschedule(at(9), out.Data))
	slow.Store(false)
	close(hold)
	require.NoError(t, <-added)
	require.EqualValues(t, ids+1, s.Stats().Records)
	require.NoError(t, s.Close())
}
