package exact

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// deferMany defers URLs, of which the first ones are in a file.
func deferMany(t *testing.T, s *Set, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, s.Defer(fmt.Sprintf("https://example.com/%d", i), nil))
	}
}

// TestCloseMergesBesideDamage damages the first of more deferred URLs than one step adds. Close must merge
// all others, since there is no other chance.
func TestCloseMergesBesideDamage(t *testing.T) {
	fs := vfs.NewMem()
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	deferMany(t, s, 20000)
	fs.Flip(pileNames[0], 20, 4)
	require.ErrorIs(t, s.Close(), ErrCorrupt)
	s, err = open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	require.EqualValues(t, 19999, s.Stats().URLs)
	require.NoError(t, s.Close())
}

// TestLostIsReportedAfterAnotherError makes the disk full in the step that finds damage. The next Merge must
// still report what is lost.
func TestLostIsReportedAfterAnotherError(t *testing.T) {
	fs := &fullLogFS{Mem: vfs.NewMem(), full: true}
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	deferMany(t, s, 4000)
	fs.Flip(pileNames[0], 20, 4)
	require.ErrorIs(t, s.Merge(), syscall.ENOSPC)
	fs.full = false
	require.ErrorIs(t, s.Merge(), ErrCorrupt)
	require.EqualValues(t, 3999, s.Stats().URLs)
	require.NoError(t, s.Merge())
	require.NoError(t, s.Close())
}

// A fullLogFS has no space for entries while it is full.
type fullLogFS struct {
	*vfs.Mem
	full bool
}

func (fs *fullLogFS) Create(name string) (vfs.File, error) {
	f, err := fs.Mem.Create(name)
	return fullLog{f, fs, fileNumber(name) > 0}, err
}

type fullLog struct {
	vfs.File
	fs  *fullLogFS
	log bool
}

func (f fullLog) WriteAt(b []byte, at int64) (int, error) {
	if f.fs.full && f.log && at >= segmentHeader {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}
