package satstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// requireSynced opens what a power failure may leave, which must have all n records.
func requireSynced(t *testing.T, fs *vfs.Mem, o Options, n int) {
	t.Helper()
	for seed := range uint64(20) {
		s, err := open(fs.Crash(rand.New(rand.NewPCG(seed, 1))), o)
		require.NoError(t, err, seed)
		require.Len(t, contents(t, s), n)
		require.NoError(t, s.Close())
	}
}

// TestNoCheckpointAfterAFailedSync: a checkpoint that waits for one whose fsync fails does not go
// on, as it would refer to data that may not be on disk. It begins before anything else learns of
// the failure.
func TestNoCheckpointAfterAFailedSync(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 64 << 10})
	broken := 0
	for nth := 1; ; nth++ {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, o)
		for i := range 100 {
			mustAdd(t, s, fmt.Sprint(i), 1002, strings.Repeat("x", 300))
		}
		require.NoError(t, s.Sync())
		step := fs.Steps() + nth
		fs.FailAt(step, syscall.EIO)
		err := s.checkpoint(false)
		if fs.Steps() < step {
			require.NoError(t, err)
			break
		}
		fs.FailAt(0)
		again := s.checkpoint(true)
		if s.broken {
			broken++
			require.ErrorIs(t, again, wal.ErrBroken, nth)
			require.ErrorIs(t, s.Sync(), wal.ErrBroken, nth)
		} else {
			require.NoError(t, again, nth)
		}
		requireSynced(t, fs, o, 100)
	}
	require.Positive(t, broken)
}

// TestNoGapBetweenLogs: the disk is full when a checkpoint creates its log. The mark that the next
// checkpoint writes into the old log leads to a log that is there, whenever the process ends.
func TestNoGapBetweenLogs(t *testing.T) {
	t.Parallel()
	o := small(Options{})
	for fault := 1; fault <= 4; fault++ { // create, write, sync, sync the directory
		for nth := 1; ; nth++ {
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			for i := range 20 {
				mustAdd(t, s, fmt.Sprint(i), 1002, "x")
			}
			require.NoError(t, s.Sync())
			fs.FailAt(fs.Steps()+fault, syscall.ENOSPC)
			require.ErrorIs(t, s.checkpointNow(), syscall.ENOSPC)
			step := fs.Steps() + nth
			fs.FailAt(step, vfs.ErrPower)
			err := s.Sync()
			if fs.Steps() < step {
				require.NoError(t, err)
				break
			}
			killed := mustOpen(t, fs.Clone(), o)
			require.Len(t, contents(t, killed), 20)
			require.NoError(t, killed.Close())
			requireSynced(t, fs, o, 20)
		}
	}
}

// TestMissingFiles: a file that the checkpoint needs is damaged if it is not there.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	disk, o, _ := filled(t, Options{Buffer: 16 << 10}, false)
	names, err := disk.List()
	require.NoError(t, err)
	for _, name := range names {
		damaged := disk.Clone()
		require.NoError(t, damaged.Remove(name))
		s, err := open(damaged, o)
		if name == wal.PendingName { // what it has may be in the log
			require.NoError(t, err)
			require.NoError(t, s.Close())
			continue
		}
		var where *CorruptError
		require.ErrorAs(t, err, &where, name)
		if name != manifest.Name {
			require.Equal(t, name, where.File)
		}
	}
}
