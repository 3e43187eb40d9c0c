package satstore

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A slowStore has a disk that needs long for the sync of a checkpoint, from slow to fast.
func slowStore(t *testing.T) (s *Store, slow, fast func()) {
	fs, hold := &faultyFS{Mem: vfs.NewMem()}, make(chan struct{})
	var held atomic.Bool
	fs.before = func(what, name string) error {
		if held.Load() && what == "sync" && name == "buckets" {
			<-hold
		}
		return nil
	}
	o := logged()
	o.Buffer, o.test.pending = 256<<10, 256<<10
	return mustOpen(t, fs, o), func() { held.Store(true) }, func() {
		held.Store(false)
		close(hold)
	}
}

// awaitIDs waits until the memory for ids no longer grows, and requires that it is bounded.
func (s *Store) awaitIDs(t *testing.T) {
	t.Helper()
	inMemory := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.idChanges * idChange
	}
	for last := int64(-1); last == 0 || inMemory() != last; {
		last = inMemory()
		time.Sleep(100 * time.Millisecond)
	}
	require.LessOrEqual(t, inMemory(), 2*s.o.Buffer+idChange)
}

// TestAddsWaitForASlowSync: while the disk needs long for the sync of a checkpoint, new ids take bounded
// memory, and visits go on.
func TestAddsWaitForASlowSync(t *testing.T) {
	t.Parallel()
	s, slow, fast := slowStore(t)
	mustAdd(t, s, "out", 1, "x")
	var out *Record
	due(t, s, 1, func(r *Record) { out = r })
	slow()
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
	s.awaitIDs(t)
	require.Empty(t, added)
	require.NoError(t, out.Reschedule(at(9), out.Data))
	fast()
	require.NoError(t, <-added)
	require.EqualValues(t, ids+1, s.Stats().Records)
	require.NoError(t, s.Close())
}

// TestEndsWaitForASlowSync: the ids of records that end take bounded memory, too.
func TestEndsWaitForASlowSync(t *testing.T) {
	t.Parallel()
	s, slow, fast := slowStore(t)
	items := make([]Item, 40_000)
	for i := range items {
		items[i] = Item{fmt.Sprint(i), at(5), nil}
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	require.NoError(t, s.Sync())
	slow()
	ended := make(chan error, 1)
	go func() {
		for r, err := range s.Due(t.Context(), at(5)) {
			if err == nil {
				err = r.Delete()
			}
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	s.awaitIDs(t)
	require.Empty(t, ended)
	fast()
	require.NoError(t, <-ended)
	require.Zero(t, s.Stats().Records)
	require.NoError(t, s.Close())
}
