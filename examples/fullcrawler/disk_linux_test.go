package main

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallDisk is a separate small file system in memory.
type smallDisk struct {
	t  *testing.T
	at string
}

func mountDisk(t *testing.T) (disk, bool) {
	d := smallDisk{t, t.TempDir()}
	if err := syscall.Mount("tmpfs", d.at, "tmpfs", 0, "size=256m"); err != nil {
		t.Logf("cannot mount a disk (%v): limiting the file size instead", err)
		return nil, false
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(d.at, syscall.MNT_DETACH)) })
	return d, true
}

func (d smallDisk) dir() string        { return d.at }
func (d smallDisk) env() []string      { return nil }
func (d smallDisk) prepare(*rand.Rand) {}
func (d smallDisk) ballast() string    { return filepath.Join(d.at, "ballast") }

// fill fills the disk up to a few pages of memory.
func (d smallDisk) fill(random *rand.Rand) {
	f, err := os.Create(d.ballast())
	require.NoError(d.t, err)
	_, err = io.Copy(f, zeros{})
	require.ErrorIs(d.t, err, syscall.ENOSPC)
	info, err := f.Stat()
	require.NoError(d.t, err)
	require.NoError(d.t, f.Truncate(max(0, info.Size()-int64(random.IntN(8)<<12))))
	require.NoError(d.t, f.Close())
}

func (d smallDisk) empty() { _ = os.Remove(d.ballast()) } // it exists only if the disk was full

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
