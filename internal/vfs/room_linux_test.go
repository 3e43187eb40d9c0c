package vfs

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMapGivesBackWhatItTook: a file that met a full disk halfway is not taken for a whole one. The
// system's limit on the length of files stands for the disk.
func TestMapGivesBackWhatItTook(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // or the limit would end the program
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
