package vfs

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

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
