package satstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A sectorFS has a page of one file that the disk cannot read.
type sectorFS struct {
	*vfs.Mem
	name string
	at   int64 // a byte of the page
}

type sectorFile struct {
	vfs.File
	from int64
}

func (f *sectorFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil || name != f.name {
		return file, err
	}
	return sectorFile{file, f.at &^ 4095}, nil
}

func (f *sectorFS) Open(name string) (vfs.File, error) {
	file, err := f.Mem.Open(name)
	return f.wrap(name, file, err)
}

func (f sectorFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.from+4096 && at+int64(len(b)) > f.from {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(b, at)
}

// TestUnreadableSector: it costs what a flipped bit costs, and the store goes on.
func TestUnreadableSector(t *testing.T) { synctest.Test(t, testUnreadableSector) }

func testUnreadableSector(t *testing.T) {
	o := small(Options{Buffer: 1 << 20})
	fs := vfs.NewMem()
	s := mustOpen(t, fs, o)
	for i := range 300 {
		mustAdd(t, s, fmt.Sprintf("due %03d", i), 1001, strings.Repeat("x", 2000))
		mustAdd(t, s, fmt.Sprintf("far %03d", i), 1100, strings.Repeat("x", 2000))
	}
	require.NoError(t, s.Close())
	for _, name := range []string{"due", "far"} { // read, or split
		at := bytes.Index(fs.Data(extent.Name), []byte(name+" 150"))
		s, err := open(&sectorFS{fs.Clone(), extent.Name, int64(at)}, o)
		require.NoError(t, err)
		ids, damage := take(t, s, 1100)
		require.Greater(t, len(ids), 500)
		require.Less(t, len(ids), 600)
		require.NotEmpty(t, damage)
		mustAdd(t, s, "new", 1200, "x")
		require.NoError(t, s.Close())
	}
}

// TestUnreadableSectorOfALog: Open refuses the store, and Repair keeps the changes before it.
func TestUnreadableSectorOfALog(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 1 << 20})
	fs := vfs.NewMem()
	s := mustOpen(t, fs, o)
	for i := range 100 {
		mustAdd(t, s, fmt.Sprint(i), 1001, strings.Repeat("x", 200))
		require.NoError(t, s.Sync())
	}
	name := "log-00000001"
	broken := &sectorFS{fs.Clone(), name, int64(len(fs.Data(name)) / 2)}
	_, err := open(broken, o)
	require.ErrorIs(t, err, syscall.EIO)
	done, err := repair(broken, vfs.NewMem(), o)
	require.NoError(t, err)
	require.Greater(t, done.Records, int64(30))
	require.Less(t, done.Records, int64(50))
	require.ErrorIs(t, errors.Join(done.Findings...), ErrCorrupt)
}

// TestOneWrongRead: a bit that is wrong in one read, but not on the disk, costs nothing, even if a split
// reads it, which gives up damaged records.
func TestOneWrongRead(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 1 << 20})
	fs := &faultyFS{Mem: vfs.NewMem()}
	s := mustOpen(t, fs, o)
	for i := range 300 {
		mustAdd(t, s, fmt.Sprint(i), 1100, "x")
		require.NoError(t, s.Update(fmt.Sprint(i), []byte("m")))
	}
	require.NoError(t, s.checkpointNow())
	b, wrong := s.bucketOf(0), map[int64]int{}
	require.NotEqual(t, 1, b.width)
	for _, p := range []*extent.Part{&b.records, &b.messages} {
		wrong[p.Extents()[0].Offset()] = 2
	}
	fs.beforeRead = func(name string, at int64) {
		if name == extent.Name && wrong[at] > 0 { // wrong before the first read, right before the next
			wrong[at]--
			fs.Flip(name, at+40, 0)
		}
	}
	n := 0
	for r, err := range s.Due(t.Context(), at(1100)) {
		require.NoError(t, err)
		require.Equal(t, "x+m", string(r.Data))
		n++
	}
	require.Equal(t, 300, n)
}

// TestDiskAwayForAMoment: a disk that cannot read for a while costs nothing, although a split and the
// messages of a slot that begins give up what is damaged.
func TestDiskAwayForAMoment(t *testing.T) {
	for _, slot := range []int64{1001, 1100} { // fine or coarse
		synctest.Test(t, func(t *testing.T) {
			fs := &faultyFS{Mem: vfs.NewMem()}
			o := small(Options{Buffer: 1 << 20})
			s := mustOpen(t, fs, o)
			for i := range 300 {
				mustAdd(t, s, fmt.Sprint(i), slot, "x")
				require.NoError(t, s.Update(fmt.Sprint(i), []byte("m")))
			}
			require.NoError(t, s.checkpointNow())
			back := time.Now().Add(30 * time.Second)
			fs.before = func(what, name string) error {
				if what == "read" && name == extent.Name && time.Now().Before(back) {
					return syscall.EIO
				}
				return nil
			}
			n := 0
			for r, err := range s.Due(t.Context(), at(slot)) {
				require.NoError(t, err)
				require.Equal(t, "x+m", string(r.Data))
				n++
			}
			require.Equal(t, 300, n)
			require.NoError(t, s.Close())
		})
	}
}

// TestDiskGone: a split gives nothing up if the disk can do nothing at all. What was written before may be
// lost then, even if a later sync succeeds, so the store stays read-only, and its log has everything.
func TestDiskGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := &atomic.Bool{}
		fs := &faultyFS{Mem: vfs.NewMem()}
		fs.before = func(what, name string) error {
			switch away := name == extent.Name && gone.Load(); {
			case away && what == "read":
				return syscall.EIO
			case away && what == "sync":
				fs.FailAt(fs.Steps()+1, syscall.EIO)
			}
			return nil
		}
		o := small(Options{Buffer: 64 << 10})
		s := mustOpen(t, fs, o)
		for i := range 300 {
			mustAdd(t, s, fmt.Sprint(i), 1100, "x")
		}
		require.NoError(t, s.checkpointNow())
		for i := range 50 { // some are flushed, but there is no checkpoint
			mustAdd(t, s, fmt.Sprint("later", i), 1200, strings.Repeat("x", 1000))
		}
		require.NoError(t, s.Sync())
		gone.Store(true)
		for r, err := range s.Due(t.Context(), at(1100)) {
			require.Nil(t, r)
			require.ErrorIs(t, err, ErrReadOnly)
		}
		gone.Store(false)
		require.ErrorIs(t, s.Sync(), wal.ErrBroken)
		require.ErrorIs(t, s.Close(), syscall.EIO)
		for seed := range uint64(10) {
			s := mustOpen(t, fs.Crash(rand.New(rand.NewPCG(seed, 0))), o)
			ids, damage := take(t, s, 1200)
			require.Len(t, ids, 350)
			require.Empty(t, damage)
			require.NoError(t, s.Close())
		}
	})
}
