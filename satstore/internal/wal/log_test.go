package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// mustCreate returns an empty log in a directory.
func mustCreate(t testing.TB, fs vfs.FS, size int) *Log {
	t.Helper()
	f, err := Create(fs, 1, 0)
	require.NoError(t, err)
	l, err := Open(fs, &sync.Mutex{}, f, size)
	require.NoError(t, err)
	require.NoError(t, fs.Sync())
	return l
}

func added(text string) *Change { return &Change{Kind: Add, Slot: 5, ID: text} }

func mustAppend(t testing.TB, l *Log, text string) {
	t.Helper()
	l.lock.Lock()
	defer l.lock.Unlock()
	survives, err := l.Append(added(text))
	require.NoError(t, err)
	require.True(t, survives)
}

// replayed returns the ids of the changes in a directory.
func replayed(t testing.TB, fs vfs.FS, number uint64) (ids []string, done Replayed) {
	t.Helper()
	ids = []string{}
	done, err := Replay(fs, number, func([]Change) {}, func(h *Change) error {
		require.Equal(t, Add, h.Kind)
		ids = append(ids, h.ID)
		return nil
	})
	require.NoError(t, err)
	return ids, done
}

// A history calls the methods of a log at random. After a kill of the process or a power failure,
// the log has a prefix of its changes.
type history struct {
	t      *testing.T
	random *rand.Rand
	fs     *vfs.Mem
	l      *Log
	all    []string
	synced int    // of all
	first  uint64 // number of the first log
	number uint64
}

func (h *history) play() {
	switch h.random.IntN(12) {
	case 0:
		require.NoError(h.t, h.l.Flush())
	case 1:
		require.NoError(h.t, h.l.Sync())
		h.synced = len(h.all)
	case 2:
		h.number++
		f, err := Create(h.fs, h.number, 0)
		require.NoError(h.t, err)
		require.NoError(h.t, h.fs.Sync())
		lock := h.l.lock.(*sync.Mutex)
		require.NoError(h.t, h.l.Rotate(f, func() { require.False(h.t, lock.TryLock()) }))
		require.True(h.t, lock.TryLock())
		lock.Unlock()
	default:
		h.append()
	}
}

func (h *history) append() {
	var changes []*Change
	size := 0
	for range 1 + h.random.IntN(3) {
		text := fmt.Sprint(len(h.all))
		if h.random.IntN(10) == 0 { // a half has room for about 1 KiB
			text += strings.Repeat("x", h.random.IntN(1500))
		}
		h.all = append(h.all, text)
		changes = append(changes, added(text))
		size += MaxSize(len(text))
	}
	if !h.l.Room(size) {
		require.NoError(h.t, h.l.Flush())
		require.True(h.t, h.l.Room(size))
	}
	survives, err := h.l.Append(changes...)
	require.NoError(h.t, err)
	if !survives {
		require.NoError(h.t, h.l.Flush())
	}
}

func newHistory(t *testing.T, seed uint64) *history {
	fs := vfs.NewMem()
	return &history{
		t: t, random: rand.New(rand.NewPCG(seed, 5)), fs: fs, l: mustCreate(t, fs, 2<<10), all: []string{},
		first: 1, number: 1,
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		h := newHistory(t, seed)
		for range 60 {
			h.play()
			got, done := replayed(t, h.fs.Clone(), h.first)
			require.Equal(t, h.all, got, "a kill, seed %d", seed)
			require.Equal(t, h.number, done.Last)
			require.Zero(t, done.Cut)
			got, _ = replayed(t, h.fs.Crash(h.random), h.first)
			require.LessOrEqual(t, len(got), len(h.all))
			require.GreaterOrEqual(t, len(got), h.synced, "seed %d", seed)
			require.Equal(t, h.all[:len(got)], got, "a power failure")
		}
		require.NoError(t, h.l.Close())
	}
}

// TestConcurrentUse appends, flushes, syncs, rotates and releases at the same time.
func TestConcurrentUse(t *testing.T) {
	fs := vfs.NewMem()
	l := mustCreate(t, fs, 4<<10)
	var others sync.WaitGroup
	want := []string{}
	done := make(chan struct{})
	beside := func(do func() error) {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					require.NoError(t, do())
				}
			}
		})
	}
	beside(l.Flush)
	beside(l.Sync)
	from := uint64(1) // earlier logs are not needed
	number := l.files[0].number
	beside(func() error {
		number++
		f, err := Create(fs, number, 0)
		require.NoError(t, err)
		err = l.Rotate(f, func() {
			if f.number%5 == 0 {
				from, want = f.number, []string{}
			}
		})
		l.Release(f.number / 5 * 5)
		return err
	})
	for n := range 3000 {
		text := fmt.Sprint(n)
		for l.lock.Lock(); !l.Room(MaxSize(len(text))); l.lock.Lock() {
			l.lock.Unlock()
			require.NoError(t, l.Flush())
		}
		want = append(want, text)
		survives, err := l.Append(added(text))
		require.NoError(t, err)
		require.True(t, survives)
		l.lock.Unlock()
	}
	close(done)
	others.Wait()
	got, _ := replayed(t, fs, from)
	require.Equal(t, want, got)
	require.NoError(t, l.Close())
}

// TestRelease removes logs that a checkpoint has made obsolete, whether or not they were written.
func TestRelease(t *testing.T) {
	h := newHistory(t, 1)
	for range 5 {
		mustAppend(t, h.l, "old")
		h.number++
		f, err := Create(h.fs, h.number, 0)
		require.NoError(t, err)
		require.NoError(t, h.l.Rotate(f, func() {}))
	}
	mustAppend(t, h.l, "new")
	h.l.Release(h.number)
	require.Len(t, h.l.files, 1)
	require.NoError(t, h.l.Sync())
	names, err := h.fs.List()
	require.NoError(t, err)
	require.Equal(t, []string{FileName(h.number), PendingName}, names)
	got, _ := replayed(t, h.fs.Crash(h.random), h.number)
	require.Equal(t, []string{"new"}, got)
	all, newest := h.l.Size()
	require.EqualValues(t, len(h.fs.Data(FileName(h.number))), all)
	require.Equal(t, all, newest)
	require.NoError(t, h.l.Close())
}

// TestFullDisk: changes that could not be written are written once there is space, in order, and
// survive the process in between.
func TestFullDisk(t *testing.T) {
	fs := vfs.NewMem()
	l := mustCreate(t, fs, 2<<10)
	mustAppend(t, l, "a")
	require.NoError(t, l.Sync())
	fs.SetSpace(fs.Used())
	mustAppend(t, l, "b")
	require.ErrorIs(t, l.Flush(), syscall.ENOSPC)
	mustAppend(t, l, "c")
	require.ErrorIs(t, l.Sync(), syscall.ENOSPC)
	f, err := Create(fs, 2, 0)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Nil(t, f)
	require.Nil(t, fs.Data(FileName(2)))
	got, _ := replayed(t, fs.Clone(), 1)
	require.Equal(t, []string{"a", "b", "c"}, got)
	fs.SetSpace(-1)
	require.NoError(t, l.Sync())
	got, _ = replayed(t, fs.Crash(rand.New(rand.NewPCG(1, 1))), 1)
	require.Equal(t, []string{"a", "b", "c"}, got)
}

// TestBrokenSync: after a failed sync, the state of the disk is unknown.
func TestBrokenSync(t *testing.T) {
	fs := vfs.NewMem()
	l := mustCreate(t, fs, 2<<10)
	mustAppend(t, l, "a")
	bad := errors.New("bad disk")
	fs.FailAt(fs.Steps()+2, bad) // the write, the sync
	err := l.Sync()
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorIs(t, err, bad)
}

// A faultyMap is a file system with mapped files in a directory, so that they can be truncated.
type faultyMap struct {
	vfs.FS
	dir vfs.OS
}

func (f faultyMap) Map(name string, size int) (*vfs.Map, error) { return f.dir.Map(name, size) }

// cut changes the size of the pending file, so that mapped memory has no file behind it.
func cut(t *testing.T, dir vfs.OS, size int64) {
	t.Helper()
	require.NoError(t, os.Truncate(filepath.Join(string(dir), PendingName), size))
}

// TestFault: if the mapped file cannot be written, a change is refused as a whole, and earlier ones
// are there.
func TestFault(t *testing.T) {
	fs := faultyMap{vfs.NewMem(), vfs.OS(t.TempDir())}
	l := mustCreate(t, fs, 64<<10)
	if l.mapped == nil || runtime.GOOS == "windows" {
		t.Skip("mapped files cannot be truncated here")
	}
	mustAppend(t, l, "a")
	cut(t, fs.dir, 0)
	_, err := l.Append(added("b"), added("c"))
	require.ErrorIs(t, err, vfs.ErrFault)
	require.ErrorIs(t, l.Sync(), vfs.ErrFault)
	cut(t, fs.dir, 64<<10)
	mustAppend(t, l, "d")
	require.NoError(t, l.Sync())
	got, _ := replayed(t, fs, 1)
	require.Equal(t, []string{"a", "d"}, got)
}

// TestCommit: changes are synced at the given delay after the first of them, together with all
// later ones until then.
func TestCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		l := mustCreate(t, fs, 2<<10)
		stop := make(chan struct{})
		failures := make(chan error, 10)
		go l.Commit(stop, 10*time.Millisecond, func(err error) { failures <- err })
		size := func() int { return len(fs.Data(FileName(1))) }
		mustAppend(t, l, "a")
		time.Sleep(6 * time.Millisecond)
		mustAppend(t, l, "b")
		time.Sleep(3 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, logHeader, size())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		both := size()
		require.Greater(t, both, logHeader+groupHeader)
		time.Sleep(time.Hour)
		require.Equal(t, both, size())
		fs.SetSpace(fs.Used())
		mustAppend(t, l, "c")
		time.Sleep(time.Hour)
		require.ErrorIs(t, <-failures, syscall.ENOSPC)
		require.Empty(t, failures)
		close(stop)
	})
}

// TestDamage: an incomplete group is the end of the log, unless a later group says that it had been
// synced.
func TestDamage(t *testing.T) {
	for _, synced := range []bool{false, true} {
		for _, rotated := range []bool{false, true} {
			fs := vfs.NewMem()
			l := mustCreate(t, fs, 2<<10)
			for i := range 3 {
				mustAppend(t, l, fmt.Sprint("change", i))
				require.NoError(t, l.Flush())
				if i == 2 && rotated {
					f, err := Create(fs, 2, 0)
					require.NoError(t, err)
					require.NoError(t, l.Rotate(f, func() {}))
					require.NoError(t, l.Flush())
				}
				if synced {
					require.NoError(t, l.Sync())
				}
			}
			mustAppend(t, l, "last")
			require.NoError(t, l.Flush())
			require.NoError(t, fs.Remove(PendingName))
			group := int64(groupHeader + 11)
			at := logHeader + group
			if rotated { // no group of its own file says so
				at += group
			}
			fs.Flip(FileName(1), at+groupHeader, 1)
			var got []string
			_, err := Replay(fs, 1, func([]Change) {}, func(h *Change) error {
				got = append(got, h.ID)
				return nil
			})
			require.Equal(t, int(at-logHeader)/int(group), len(got))
			if !synced {
				require.NoError(t, err)
				continue
			}
			var where *durable.CorruptError
			require.ErrorAs(t, err, &where)
			require.Equal(t, FileName(1), where.File)
			require.Equal(t, at, where.Offset)
		}
	}
}

// TestMisfit: an error for a change that cannot be applied has its position in the log.
func TestMisfit(t *testing.T) {
	fs := vfs.NewMem()
	l := mustCreate(t, fs, 2<<10)
	mustAppend(t, l, "a")
	require.NoError(t, l.Flush())
	_, err := Replay(fs, 1, func([]Change) {}, func(*Change) error { return Misfit("unknown bucket") })
	var where *durable.CorruptError
	require.ErrorAs(t, err, &where)
	require.Equal(t, "before this: unknown bucket", where.Reason)
	require.EqualValues(t, len(fs.Data(FileName(1))), where.Offset)
	other := errors.New("other")
	_, err = Replay(fs, 1, func([]Change) {}, func(*Change) error { return other })
	require.ErrorIs(t, err, other)
}

// TestOpenFailsAtEachStep leaves nothing open or mapped.
func TestOpenFailsAtEachStep(t *testing.T) {
	bad := errors.New("bad disk")
	for nth := 1; ; nth++ {
		fs := vfs.NewMem()
		fs.FailAt(nth, bad)
		f, err := Create(fs, 1, 0)
		if err == nil {
			var l *Log
			if l, err = Open(fs, &sync.Mutex{}, f, 1024); err == nil {
				require.NoError(t, l.Close())
				break
			}
		}
		require.ErrorIs(t, err, bad)
	}
}

// unmappable is a file system that cannot map files.
type unmappable struct{ vfs.FS }

func (unmappable) Map(string, int) (*vfs.Map, error) { return nil, errors.ErrUnsupported }

func TestUnmappable(t *testing.T) {
	fs := vfs.NewMem()
	l := mustCreate(t, unmappable{fs}, 2<<10)
	mustAppend(t, l, "a")
	require.NoError(t, l.Sync())
	mustAppend(t, l, "b")
	got, _ := replayed(t, fs, 1)
	require.Equal(t, []string{"a"}, got)
	require.NoError(t, l.Close())
}

func TestAppendAllocatesNothing(t *testing.T) {
	l := mustCreate(t, vfs.NewMem(), 1<<20)
	old := bytes.Repeat([]byte("x"), 100)
	h := &Change{Kind: Move, Bucket: 3, Record: 4, Slot: 9, Old: old, Data: bytes.Clone(old)}
	h.Data[5] = 'y'
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		h.Record++
		_, err := l.Append(h)
		require.NoError(t, err)
	}))
}

func BenchmarkAppend(b *testing.B) {
	l := mustCreate(b, vfs.OS(b.TempDir()), PendingSize)
	old := bytes.Repeat([]byte("x"), 100)
	h := &Change{Kind: Move, Bucket: 3, Record: 4, Slot: 9, Old: old, Data: bytes.Clone(old)}
	copy(h.Data[5:], "0123456789")
	b.ReportAllocs()
	for b.Loop() {
		h.Record++
		if !l.Room(200) {
			if err := l.Flush(); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := l.Append(h); err != nil {
			b.Fatal(err)
		}
	}
}

// TestClosed: a Sync or a Flush that waits while the log is closed writes neither to its files nor to
// unmapped memory.
func TestClosed(t *testing.T) {
	for range 10 {
		l := mustCreate(t, vfs.OS(t.TempDir()), 2<<10)
		mustAppend(t, l, "a")
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() { _ = l.Sync() })
			waiting.Go(func() { _ = l.Flush() })
		}
		mustAppend(t, l, "b")
		require.NoError(t, l.Close())
		require.ErrorIs(t, l.Sync(), fs.ErrClosed)
		waiting.Wait()
	}
}

// A writingFS calls a function before each write to a log.
type writingFS struct {
	*vfs.Mem
	writes func()
}

type writingFile struct {
	vfs.File
	fs *writingFS
}

func (f *writingFS) Create(name string) (vfs.File, error) {
	file, err := f.Mem.Create(name)
	return writingFile{file, f}, err
}

func (f writingFile) WriteAt(b []byte, at int64) (int, error) {
	if f.fs.writes != nil {
		f.fs.writes()
	}
	return f.File.WriteAt(b, at)
}

// TestChangeBehindALargeGroup: a group that does not fit in the pending file is lost if the process
// ends while it is being written, and with it the changes that follow. So these do not survive yet.
func TestChangeBehindALargeGroup(t *testing.T) {
	for _, full := range []bool{false, true} {
		fs := &writingFS{Mem: vfs.NewMem()}
		l := mustCreate(t, fs, 2<<10)
		mustAppend(t, l, "before")
		survives, err := l.Append(added(strings.Repeat("x", 10_000)))
		require.NoError(t, err)
		require.False(t, survives)
		appended := 0
		fs.writes = func() {
			survives, err := l.Append(added(fmt.Sprint("after ", appended)))
			require.NoError(t, err)
			require.False(t, survives)
			appended++
			ids, _ := replayed(t, fs.Clone(), 1)
			require.Equal(t, []string{"before"}, ids)
		}
		if full {
			fs.SetSpace(fs.Used() + 5000)
			require.ErrorIs(t, l.Flush(), syscall.ENOSPC)
			require.ErrorIs(t, l.Flush(), syscall.ENOSPC)
			require.Equal(t, 2, appended)
			fs.SetSpace(-1)
		}
		// Once it is written, they survive.
		fs.writes = nil
		require.NoError(t, l.Flush())
		mustAppend(t, l, "last")
		ids, _ := replayed(t, fs.Clone(), 1)
		require.Len(t, ids, 3+appended)
		require.NoError(t, l.Flush())
		for _, h := range l.halves { // nor is its memory kept
			require.LessOrEqual(t, cap(h.changes), h.room)
		}
		require.LessOrEqual(t, cap(l.group), 5000)
		require.NoError(t, l.Close())
	}
}

// TestGroupBehindAnUnsyncedLog: the offset up to which a group says that its log was synced is 0 while
// an older log is not, as a crash may have lost the end of that.
func TestGroupBehindAnUnsyncedLog(t *testing.T) {
	fs := vfs.NewMem()
	l := mustCreate(t, fs, 2<<10)
	next, err := Create(fs, 2, 0)
	require.NoError(t, err)
	require.NoError(t, fs.Sync())
	mustAppend(t, l, "old")
	require.NoError(t, l.Rotate(next, func() {}))
	mustAppend(t, l, "new")
	require.NoError(t, l.Flush())
	for seed := range uint64(50) {
		ids, _ := replayed(t, fs.Crash(rand.New(rand.NewPCG(seed, 1))), 1) // no damage
		require.Subset(t, []string{"old", "new"}, ids)
	}
}
