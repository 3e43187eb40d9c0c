package exact

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// A sectorFS cannot read a byte of the file of deferred URLs while it is bad.
type sectorFS struct {
	*vfs.Mem
	bad  bool
	at   int64
	size int64         // of what is unreadable; 0 means 1
	slow time.Duration // how long it tries
}

func (fs *sectorFS) Create(name string) (vfs.File, error) {
	f, err := fs.Mem.Create(name)
	return sectorFile{f, fs, name == pileNames[0]}, err
}

type sectorFile struct {
	vfs.File
	fs   *sectorFS
	pile bool
}

func (f sectorFile) ReadAt(b []byte, at int64) (int, error) {
	if f.fs.bad && f.pile && at < f.fs.at+max(1, f.fs.size) && at+int64(len(b)) > f.fs.at {
		time.Sleep(f.fs.slow)
		return 0, syscall.EIO
	}
	return f.File.ReadAt(b, at)
}

// TestUnreadablePile has an unreadable byte in the file of deferred URLs. It may be readable again after a
// moment, so nothing is lost at first, and no files pile up meanwhile. After a minute the merge goes on
// without it.
func TestUnreadablePile(t *testing.T) {
	fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 50_000}
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	add(t, s, "https://example.com/") // so that the log is not empty
	deferMany(t, s, 20000)
	for range 100 {
		require.ErrorIs(t, s.Merge(), syscall.EIO)
	}
	names, err := fs.List()
	require.NoError(t, err)
	require.Less(t, len(names), 10, "files")
	s.deferred.merge.unread = time.Now().Add(-2 * time.Minute)
	require.ErrorIs(t, s.Merge(), ErrCorrupt)
	require.NoError(t, s.Merge())
	lost := 20001 - int(s.Stats().URLs)
	require.Positive(t, lost)
	require.Equal(t, 1, lost)
	require.NoError(t, s.Close())
}

// TestCloseMergesBesideABadSector: Close cannot be tried again, so it does not wait for what is unreadable, and
// that costs only itself.
func TestCloseMergesBesideABadSector(t *testing.T) {
	fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 50_000}
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	deferMany(t, s, 20000)
	require.ErrorIs(t, s.Close(), ErrCorrupt)
	s, err = open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	require.EqualValues(t, 19999, s.Stats().URLs)
	require.NoError(t, s.Close())
}

// TestUnreadablePileBehindManyBytes has the unreadable byte behind more entries than are written at once. No
// retry may write them again.
func TestUnreadablePileBehindManyBytes(t *testing.T) {
	fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 600_000}
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	add(t, s, "https://example.com/") // so that the log is not empty
	for i := range 2000 {
		require.NoError(t, s.Defer(fmt.Sprintf("https://example.com/%d", i), make([]byte, 900)))
	}
	require.ErrorIs(t, s.Merge(), syscall.EIO)
	used := fs.Used()
	for range 100 {
		require.ErrorIs(t, s.Merge(), syscall.EIO)
	}
	require.Equal(t, used, fs.Used())
	fs.bad = false
	require.NoError(t, s.Merge())
	require.EqualValues(t, 2001, s.Stats().URLs)
	require.NoError(t, s.Close())
}

// TestUnreadableArea: an area that many steps read costs a minute, too, and not one for each of them.
func TestUnreadableArea(t *testing.T) {
	fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 100_000, size: 300_000}
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	deferMany(t, s, 20000)
	require.ErrorIs(t, s.Merge(), syscall.EIO)
	s.deferred.merge.unread = time.Now().Add(-2 * time.Minute)
	require.ErrorIs(t, s.Merge(), ErrCorrupt)
	require.NoError(t, s.Merge())
	const item = 4 + 1 + len("https://example.com/9999")
	require.InDelta(t, 20000-300_000/item, float64(s.Stats().URLs), 200)
	require.NoError(t, s.Close())
}

// TestSlowBadSector: a disk tries for long to read a bad sector. The read of many items that is under way when the
// minute ends does not cost those before the sector.
func TestSlowBadSector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 300_000, slow: 40 * time.Second}
		s, err := open(fs, Options{Memory: MinMemory})
		require.NoError(t, err)
		deferMany(t, s, 20000)
		for err = s.Merge(); errors.Is(err, syscall.EIO); {
			err = s.Merge()
		}
		require.ErrorIs(t, err, ErrCorrupt)
		require.NoError(t, s.Merge())
		require.EqualValues(t, 19999, s.Stats().URLs)
		require.NoError(t, s.Close())
	})
}

// TestSlowBadArea: other calls come in after each read of a large unreadable area.
func TestSlowBadArea(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 30 * time.Second
		fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 100_000, size: 10_000, slow: slow}
		s, err := open(fs, Options{Memory: MinMemory})
		require.NoError(t, err)
		deferMany(t, s, 20000)
		for err = s.Merge(); errors.Is(err, syscall.EIO); {
			s.mu.Lock()
			for err = nil; err == nil && s.deferred.merge != nil; {
				began := time.Now()
				err = s.stepMerge()
				require.Less(t, time.Since(began), 3*slow)
			}
			s.mu.Unlock()
		}
		require.ErrorIs(t, err, ErrCorrupt)
		require.NoError(t, s.Close())
	})
}

// TestUnreadablePileForAMoment loses nothing.
func TestUnreadablePileForAMoment(t *testing.T) {
	fs := &sectorFS{Mem: vfs.NewMem(), bad: true, at: 50_000}
	s, err := open(fs, Options{Memory: MinMemory})
	require.NoError(t, err)
	deferMany(t, s, 20000)
	require.ErrorIs(t, s.Merge(), syscall.EIO)
	fs.bad = false
	require.NoError(t, s.Merge())
	require.EqualValues(t, 20000, s.Stats().URLs)
	require.NoError(t, s.Close())
}
