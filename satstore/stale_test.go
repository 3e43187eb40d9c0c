package satstore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// TestRoomUsedAgainWhileRead: between the moment in which a walk learns where an extent is and that
// in which it reads it, all that is in it may be given back, and its room used for something else.
// That is no damage.
func TestRoomUsedAgainWhileRead(t *testing.T) {
	fs, o := &faultyFS{Mem: vfs.NewMem()}, small(Options{})
	s := mustOpen(t, fs, o)
	for i := range 6 { // an extent each
		mustAdd(t, s, fmt.Sprint(i), 1001, strings.Repeat("x", 3000))
		require.NoError(t, s.checkpointNow())
	}
	require.NoError(t, s.Update("1", make([]byte, 1500)))
	require.NoError(t, s.Advance())
	require.Len(t, s.due[0].records.extents, 6)
	first := s.due[0].records.extents[0]
	held, reused := map[string]*Record{}, false
	fs.beforeRead = func(name string, at int64) {
		if name != dataName || at != first.offset() || len(held) < 3 || reused {
			return
		}
		reused = true
		require.NoError(t, held["0"].Reschedule(1050, nil))
		require.NoError(t, s.checkpointNow())
		for i := range 4 {
			mustAdd(t, s, fmt.Sprint("other ", i), 1090, strings.Repeat("y", 4000))
		}
		require.NoError(t, s.checkpointNow())
	}
	var ids []string
	for r, err := range s.Due(t.Context()) {
		require.NoError(t, err)
		require.EqualValues(t, 2, r.chunk.bucket.passes)
		held[string(r.ID)] = r
		ids = append(ids, string(r.ID))
	}
	require.True(t, reused, "the second pass began to read what the first had handed out")
	require.Equal(t, []string{"0", "2", "4", "1", "3", "5"}, ids)
	require.NoError(t, s.Check())
}

// TestSlotOutlivesTheProcess: a slot that begins when the file for changes is full does so in the
// log.
func TestSlotOutlivesTheProcess(t *testing.T) {
	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1, pending: 1 << 10}
	s := mustOpen(t, fs, o)
	for i := range 300 {
		mustAdd(t, s, fmt.Sprint(i), 1, "x")
	}
	for i := range 299 {
		require.NoError(t, s.Delete(fmt.Sprint(i)))
	}
	require.Len(t, dueIDs(t, s, nil), 1)
	require.True(t, s.log.spilled(), "the walk noted what it dropped")
	require.NoError(t, s.Advance())
	killed := mustOpen(t, fs.Clone(), o)
	require.EqualValues(t, 2, killed.Now())
	require.Equal(t, map[string]string{"299": "1 x"}, contents(t, killed))
}

// TestOthersFilesAreLeftAlone: what only looks like a file of the store, as a crawler may keep in
// the same directory, is neither removed nor in the way.
func TestOthersFilesAreLeftAlone(t *testing.T) {
	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1, pending: 1 << 10}
	others := []string{
		"log-of-the-crawler", "log-2026", "ids-00000001.bak", "places-", "log-0000000x", "CHECKPOINT~",
		"log--0000001", "log-00000001-", "ids-+0000001",
	}
	for _, name := range others {
		fs.Put(name, make([]byte, 100))
	}
	for range 3 {
		s := mustOpen(t, fs, o)
		require.NoError(t, s.Sync())
		require.NoError(t, s.Close())
	}
	for _, name := range others {
		require.Len(t, fs.Data(name), 100, name)
	}
	for _, name := range []string{
		logName(1), idset.FileName(math.MaxUint64), placesName(123456789), dataName, checkpointName,
		checkpointTemp, pendingName,
	} {
		require.True(t, isOurs(name), name)
	}
	fs.Put(logName(77), []byte("left behind"))
	mustOpen(t, fs, o)
	require.Nil(t, fs.Data(logName(77)))
}

// TestFailedCheckpointsTakeNoRoom: a disk that is full does not get fuller by trying.
func TestFailedCheckpointsTakeNoRoom(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Start: 1, NoLog: true})
	var items []Item
	for i := range 20_000 {
		items = append(items, Item{ID: fmt.Sprint(i), Slot: 1})
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	names, err := fs.List()
	require.NoError(t, err)
	for _, room := range []int64{500_000, 400_000, 300_000, 1000, 0} { // for less each time
		fs.SetSpace(fs.Used() + room)
		require.ErrorIs(t, s.Sync(), ErrReadOnly)
		left, err := fs.List()
		require.NoError(t, err)
		require.Equal(t, names, left)
	}
	fs.SetSpace(-1)
	require.NoError(t, s.Sync())
	require.NoError(t, s.Check())
	require.Len(t, contents(t, s), 20_000)
}

// TestCloseBesideAll closes a store while it is used in every way. Each call ends with what it was
// asked for or with ErrClosed, and what was acknowledged is there.
func TestCloseBesideAll(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		dir := t.TempDir()
		o := Options{Start: 1, Buffer: 32 << 10, Page: 1 << 10, pending: 16 << 10, Radix: 4, Horizon: 300}
		s, err := Open(dir, o)
		require.NoError(t, err)
		for i := range 200 {
			mustAdd(t, s, fmt.Sprint(i), int64(1+i%5), strings.Repeat("x", 300))
		}
		var users sync.WaitGroup
		var added sync.Map
		enough := make(chan struct{})
		closeEnough := sync.OnceFunc(func() { close(enough) })
		for name, use := range map[string]func(i int) error{
			"Add": func(i int) error {
				id := fmt.Sprint("new ", i)
				_, err := s.Add(id, int64(i%50), make([]byte, 200))
				if err == nil {
					added.Store(id, true)
				}
				if err != nil || i == 60 {
					closeEnough()
				}
				return err
			},
			"Update": func(i int) error { return s.Update(fmt.Sprint(i%200), []byte("message")) },
			"Get":    func(i int) error { _, err := s.Get(fmt.Sprint(i % 200)); return err },
			"Sync":   func(int) error { return s.Sync() },
			"Check":  func(int) error { return s.Check() },
			"Backup": func(i int) error {
				return s.Backup(filepath.Join(dir, fmt.Sprint("backup ", i)))
			},
			"Scan": func(int) (err error) {
				for _, err = range s.Scan() {
				}
				return err
			},
			"Due": func(int) error {
				for r, err := range s.Due(t.Context()) {
					if err == nil {
						err = r.Reschedule(r.Slot+3, r.Data)
					}
					if err != nil {
						return err
					}
				}
				return s.Advance()
			},
		} {
			users.Go(func() {
				var err error
				for i := 0; err == nil; i++ {
					s.Stats()
					err = use(i)
				}
				if !errors.Is(err, ErrClosed) {
					t.Errorf("round %d: %s: %v", round, name, err)
				}
			})
		}
		<-enough
		require.NoError(t, s.Close())
		users.Wait()
		s, err = Open(dir, o)
		require.NoError(t, err)
		got := contents(t, s)
		added.Range(func(id, _ any) bool { require.Contains(t, got, id); return true })
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		require.NoError(t, os.RemoveAll(dir))
	}
}

// TestLargestFile: a file whose places are used up refuses, and does not begin anew at its front.
func TestLargestFile(t *testing.T) {
	s := &space{end: maxGrains - 10}
	at, fits := s.take(10)
	require.True(t, fits)
	require.Equal(t, uint32(maxGrains-10), at)
	_, fits = s.take(1)
	require.False(t, fits)
	s.giveBack(span{maxGrains - 10, 10})
	_, fits = s.take(3)
	require.True(t, fits, "there is room in between")

	fs, o := vfs.NewMem(), small(Options{})
	full := mustOpen(t, fs, o)
	end := full.space.end
	full.space.end = maxGrains
	mustAdd(t, full, "a", 1005, "x")
	err := full.checkpointNow()
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorContains(t, err, "16 TiB")
	require.Equal(t, map[string]string{"a": "1005 x"}, contents(t, full))
	full.space.end = end
	require.NoError(t, full.Sync())
	require.NoError(t, full.Close())
	require.Equal(t, map[string]string{"a": "1005 x"}, contents(t, mustOpen(t, fs, o)))
}
