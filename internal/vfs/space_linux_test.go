package vfs

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMapFreesItsSpaceOnFailure checks that a file does not look complete if the disk became full
// while it was allocated. The system's limit on file sizes stands in for the disk.
func TestMapFreesItsSpaceOnFailure(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // which would end the process
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var unlimited syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited))
	limited := unlimited
	limited.Cur = 4096
	d := OS(t.TempDir())
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
	_, err := d.Map("a", 8192)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited))
	require.ErrorIs(t, err, syscall.EFBIG)
	info, err := os.Stat(filepath.Join(string(d), "a"))
	require.NoError(t, err)
	require.Zero(t, info.Size())
	m, err := d.Map("a", 8192)
	require.NoError(t, err)
	require.Len(t, m.Bytes, 8192)
	require.NoError(t, m.Close())
}

// TestSyncDirWaitsForADescriptor of which the process has none for a moment.
func TestSyncDirWaitsForADescriptor(t *testing.T) {
	dir := t.TempDir()
	var usual syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual)) }()
	few := usual
	few.Cur = 100
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	var held []*os.File
	release := func() {
		for _, f := range held {
			_ = f.Close()
		}
		held = nil
	}
	defer release()
	for {
		f, err := os.Open(dir)
		if Exhausted(err) {
			break
		}
		require.NoError(t, err)
		held = append(held, f)
	}
	require.True(t, Exhausted(SyncDir(dir)), "it does not wait for ever")
	time.AfterFunc(50*time.Millisecond, func() { _ = held[0].Close() })
	require.NoError(t, SyncDir(dir))
}
