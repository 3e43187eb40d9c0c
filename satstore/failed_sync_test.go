package satstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
)

// TestSyncsOnFullDisk: however often Sync is called while the disk is full, the number of files, open
// or not, stays the same.
func TestSyncsOnFullDisk(t *testing.T) {
	t.Parallel()
	fs := &faultyFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, small(Options{}))
	mustAdd(t, s, "a", 2000, strings.Repeat("x", 30<<10))
	require.NoError(t, s.Sync())
	fs.SetSpace(fs.Used() + 4<<10) // for logs, not for the record
	s.runTask(&task{run: s.checkpointNow})
	require.ErrorIs(t, s.Sync(), ErrReadOnly)
	open := fs.open.Load()
	names, err := fs.List()
	require.NoError(t, err)
	for range 20 {
		require.ErrorIs(t, s.Sync(), ErrReadOnly)
		require.Equal(t, open, fs.open.Load())
		now, err := fs.List()
		require.NoError(t, err)
		require.Equal(t, names, now)
	}
	fs.SetSpace(-1)
	require.NoError(t, s.Sync())
	want := datasOf(t, s)
	require.NotEmpty(t, want)
	require.NoError(t, s.Check())
	killed := mustOpen(t, fs.Clone(), small(Options{}))
	require.Equal(t, want, datasOf(t, killed))
	require.NoError(t, s.Close())
	require.Equal(t, want, datasOf(t, mustOpen(t, fs.Mem, small(Options{}))))
}

// TestSyncsAfterOpen: the same while the first checkpoint after Open fails.
func TestSyncsAfterOpen(t *testing.T) {
	t.Parallel()
	fs, o, want := filled(t, small(Options{}), false)
	faulty := &faultyFS{Mem: fs}
	full := errors.New("full")
	faulty.before = func(what, name string) error {
		if what == "write" && name == manifest.Temp {
			return full
		}
		return nil
	}
	s, err := open(faulty, o)
	require.NoError(t, err)
	open := faulty.open.Load()
	names, err := fs.List()
	require.NoError(t, err)
	for range 20 {
		require.ErrorIs(t, s.Sync(), full)
		require.Equal(t, open, faulty.open.Load())
		now, err := fs.List()
		require.NoError(t, err)
		require.Equal(t, names, now)
	}
	faulty.before = nil
	require.NoError(t, s.Sync())
	mustAdd(t, s, "another", 2000, "x")
	require.NoError(t, s.Close())
	require.Zero(t, faulty.open.Load())
	got := contents(t, mustOpen(t, fs, o))
	require.Len(t, got, len(want)+1)
}

// A renamingFS calls a function when the checkpoint is replaced.
type renamingFS struct {
	*vfs.Mem
	renamed func()
}

func (f *renamingFS) Rename(from, to string) error {
	if f.renamed != nil && to == manifest.Name {
		f.renamed()
	}
	return f.Mem.Rename(from, to)
}

// TestFailureDuringSync: a failure during the checkpoint of a Sync is not forgotten with the one
// before it.
func TestFailureDuringSync(t *testing.T) {
	t.Parallel()
	fs := &renamingFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, small(Options{}))
	mustAdd(t, s, "a", 2000, "data")
	first, second := errors.New("first"), errors.New("second")
	fail := func(err error) {
		s.runTask(&task{run: func() error { return err }})
	}
	fail(first)
	fs.renamed = func() { fail(second) }
	err := s.Sync()
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, err, second)
	require.NotErrorIs(t, err, first)
	fs.renamed = func() { fail(s.refusalNow()) } // a task that was refused is no news
	require.NoError(t, s.Sync())
	_, err = s.Add("b", at(2000), nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func (s *Store) refusalNow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal()
}
