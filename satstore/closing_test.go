package satstore

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// TestNothingAfterClose: a call that was waiting when the store was closed changes no file, as they
// may belong to another process by then.
func TestNothingAfterClose(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := mustOpen(t, fs, small(Options{}))
	mustAdd(t, s, "a", 2000, "x")
	require.NoError(t, s.Close())
	steps := fs.Steps()
	require.ErrorIs(t, s.checkpoint(false), ErrClosed)
	require.ErrorIs(t, s.flushLog(), ErrClosed)
	require.Error(t, s.log.Sync())
	require.Equal(t, steps, fs.Steps())
}

// TestCloseWaitsForACheckpoint: even if the disk is broken, so that Close itself makes none, it keeps
// the lock until a checkpoint that runs is over.
func TestCloseWaitsForACheckpoint(t *testing.T) {
	t.Parallel()
	fs := &faultyFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, small(Options{}))
	mustAdd(t, s, "a", 2000, "x")
	within, goOn := make(chan bool), make(chan bool)
	fs.before = func(what, name string) error {
		if what == "sync" && name == "buckets" {
			close(within)
			<-goOn
		}
		return nil
	}
	point, closed := make(chan error, 1), make(chan error, 1)
	go func() { point <- s.checkpoint(false) }()
	<-within
	s.mu.Lock()
	_ = s.fail(wal.ErrBroken)
	s.mu.Unlock()
	go func() { closed <- s.Close() }()
	for begun := false; !begun; {
		s.mu.Lock()
		begun = s.closed
		s.mu.Unlock()
	}
	for range 1000 {
		runtime.Gosched()
	}
	_, err := fs.Lock(lockName)
	require.ErrorIs(t, err, vfs.ErrLocked)
	close(goOn)
	require.NoError(t, <-point)
	require.ErrorIs(t, <-closed, wal.ErrBroken)
	_, err = fs.Lock(lockName)
	require.NoError(t, err)
}

// TestCloseOfABrokenStore: it is an error, and what the log can still save is saved.
func TestCloseOfABrokenStore(t *testing.T) {
	t.Parallel()
	fs := &faultyFS{Mem: vfs.NewMem()}
	o := small(Options{})
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "a", 2000, "x")
	fs.before = func(what, name string) error {
		if what == "sync" && name == "buckets" {
			return syscall.EIO
		}
		return nil
	}
	require.ErrorIs(t, s.checkpoint(false), wal.ErrBroken)
	err := s.Close()
	require.ErrorIs(t, err, wal.ErrBroken)
	require.ErrorIs(t, err, syscall.EIO)
	requireSynced(t, fs.Mem, o, 1)
}
