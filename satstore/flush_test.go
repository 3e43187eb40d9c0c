package satstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
)

// A gatedFS makes writes to a file wait until its gate is open, or fail.
type gatedFS struct {
	*vfs.Mem
	file string
	gate chan struct{}
	fail atomic.Pointer[error]
}

var errBad = errors.New("bad disk")

type gatedFile struct {
	vfs.File
	fs *gatedFS
}

func (g *gatedFS) Create(name string) (vfs.File, error) {
	f, err := g.Mem.Create(name)
	if name == g.file && err == nil {
		f = gatedFile{f, g}
	}
	return f, err
}

func (f gatedFile) WriteAt(b []byte, at int64) (int, error) {
	if at >= 4096 || f.fs.file != extent.Name { // the rest is not a bucket
		<-f.fs.gate
		if err := f.fs.fail.Load(); err != nil {
			return 0, *err
		}
	}
	return f.File.WriteAt(b, at)
}

// behindGate returns a store whose buffers are being written to a blocked disk, and its contents: a
// record of 1,000 bytes in each slot from 257 on.
func behindGate(t *testing.T) (*gatedFS, *Store, map[string]string) {
	t.Helper()
	fs := &gatedFS{Mem: vfs.NewMem(), file: extent.Name, gate: make(chan struct{})}
	o := small(Options{Buffer: 64 << 10})
	o.Start, o.test.work, o.test.page, o.test.pending = at(0x100), nil, 1<<10, 1<<20
	o.test.shape = calendar.Default // so that there are no splits
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i := 0; !s.full(5); i++ {
		addLong(t, s, want, i)
	}
	for !s.writing() {
		runtime.Gosched()
	}
	return fs, s, want
}

// full reports whether the given number of eighths of the buffers are in use.
func (s *Store) full(eighths int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pool.Full(eighths)
}

// writing reports whether a write is in progress.
func (s *Store) writing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.buckets {
		if len(b.records.Taken(nil)) > 0 {
			return true
		}
	}
	return false
}

func addLong(t *testing.T, s *Store, want map[string]string, i int) {
	t.Helper()
	id, data := fmt.Sprint("https://a.test/", i), strings.Repeat("long", 250)
	slot := nowOf(s) + 1 + int64(i)
	mustAdd(t, s, id, slot, data)
	want[id] = fmt.Sprint(slot, " ", data)
}

// TestFlushBlocksNoCalls: while buffers are being written, the store accepts records and messages,
// hands out records, and shows those that are being written. The same is true during each part of a
// checkpoint.
func TestFlushBlocksNoCalls(t *testing.T) {
	t.Parallel()
	for _, file := range []string{extent.Name, manifest.Temp, "ids-00000001"} {
		t.Run(file, func(t *testing.T) {
			fs, s, want := behindGate(t)
			if file != extent.Name { // let these pass, and block another file
				close(fs.gate)
				require.NoError(t, s.checkpointNow())
				fs.gate, fs.file = make(chan struct{}), file
			}
			checkpoint := make(chan error)
			go func() { checkpoint <- s.checkpoint(false) }()
			n := len(want)
			for i := range 15 {
				addLong(t, s, want, n+i)
			}
			last := fmt.Sprint("https://a.test/", n-1)
			require.NoError(t, s.Update(last, []byte("message")))
			want[last] += "+message"
			require.NoError(t, s.Sync())
			require.Equal(t, want, contents(t, s))
			for i := range n - 1 { // slots whose records are being written
				id := fmt.Sprint("https://a.test/", i)
				require.Equal(t, []string{id}, due(t, s, nowOf(s)+1, func(r *Record) {
					require.NoError(t, r.Reschedule(r.At().Add(3000*time.Hour), []byte("visited")))
					want[id] = fmt.Sprint(slotAt(r.At())+3000, " visited")
				}))
			}
			require.Equal(t, want, contents(t, s))
			killed := mustOpen(t, fs.Mem.Clone(), s.o)
			require.Equal(t, want, contents(t, killed), "a crash at this point loses nothing")
			require.NoError(t, killed.Check())
			close(fs.gate)
			require.NoError(t, <-checkpoint)
			require.Equal(t, want, contents(t, s))
			require.NoError(t, s.Check())
			require.NoError(t, s.Close())
		})
	}
}

// TestFullBuffersWait: when all memory is in use, callers that need some wait until the first
// extent has been written or the write fails.
func TestFullBuffersWait(t *testing.T) {
	for _, fails := range []bool{false, true} {
		fs, s, want := behindGate(t)
		for i := len(want); !s.full(8); i++ {
			addLong(t, s, want, i)
		}
		waited := make(chan error)
		go func() {
			_, err := s.Add("waits", at(9), nil)
			waited <- err
		}()
		select {
		case <-waited:
			require.Fail(t, "a call succeeded without memory")
		case <-time.After(10 * time.Millisecond):
		}
		if fails {
			fs.fail.Store(&errBad)
		}
		close(fs.gate)
		err := <-waited
		fs.fail.Store(nil)
		if fails {
			require.ErrorIs(t, err, errBad)
			require.NoError(t, s.Sync())
		} else {
			require.NoError(t, err)
			want["waits"] = "256 "
		}
		require.Equal(t, want, contents(t, s))
		require.NoError(t, s.Close())
	}
}

// TestSpaceOfDroppedBuckets: a bucket whose records have all moved while it was being written takes
// no space on disk in the end.
func TestSpaceOfDroppedBuckets(t *testing.T) {
	fs, s, want := behindGate(t)
	due(t, s, nowOf(s)+int64(len(want)), func(r *Record) { require.NoError(t, r.Delete()) })
	require.NoError(t, s.pass(nowOf(s)+1))
	require.Empty(t, contents(t, s))
	close(fs.gate)
	for used := int64(1); used > 0; runtime.Gosched() { // nothing waits for needless writes
		s.mu.Lock()
		used = s.pool.Used()
		s.mu.Unlock()
	}
	for range 3 { // old pages of the bucket index are freed, too
		require.NoError(t, s.checkpointNow())
	}
	size, free := s.file.Size()
	require.LessOrEqual(t, size-free, int64(4096+132<<10), "the header, and a page of the index")
	require.Zero(t, s.pool.Used())
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestFlushFails: after a failed write the data stays in memory and is retried, and no space is
// lost.
func TestFlushFails(t *testing.T) {
	fs, s, want := behindGate(t)
	fs.fail.Store(&errBad)
	close(fs.gate)
	require.ErrorIs(t, s.checkpointNow(), errBad)
	s.mu.Lock()
	used := s.pool.Used()
	s.mu.Unlock()
	require.Positive(t, used)
	require.ErrorIs(t, s.Sync(), errBad)
	require.ErrorIs(t, s.Sync(), ErrReadOnly)
	require.Equal(t, used, s.pool.Used())
	require.Equal(t, want, contents(t, s))
	fs.fail.Store(nil)
	require.NoError(t, s.Sync())
	require.Zero(t, s.pool.Used())
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Check())
	_, free := s.file.Size()
	require.Zero(t, free, "a failed attempt leaves no holes")
	require.NoError(t, s.Close())
}

// TestNearSlotsStayInMemory: a flush writes all buffers except the nearest ones, which may keep a
// quarter of the memory.
func TestNearSlotsStayInMemory(t *testing.T) {
	fs, s, _ := behindGate(t)
	near, last := 0, int64(0)
	for b := range s.buckets {
		if len(b.records.Taken(nil)) > 0 {
			last = b.start
		} else if pages := b.records.Buffered(); pages > 0 && last == 0 {
			near += pages
		}
	}
	require.Positive(t, near)
	require.Positive(t, last)
	require.LessOrEqual(t, near, 64/4)
	close(fs.gate)
	require.NoError(t, s.Close())
}

// TestVisitsReuseSpace: records that are visited in each slot are rewritten each time. Each
// checkpoint frees the old space, so the file does not grow with the visits. It shrinks once they
// are deleted.
func TestVisitsReuseSpace(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := mustOpen(t, fs, small(Options{}))
	total := int64(0)
	for i := range 200 {
		id, data := fmt.Sprint("https://a.test/", i), fmt.Sprintf("%100d", i)
		mustAdd(t, s, id, 1000, data)
		total += int64(len(id) + len(data))
	}
	visits, early := 0, int64(0)
	for slot := range int64(150) {
		due(t, s, 1000+slot, func(r *Record) {
			visits++
			require.NoError(t, r.Reschedule(r.At().Add(time.Hour), r.Data))
		})
		if slot%5 == 0 {
			require.NoError(t, s.checkpointNow())
		}
		if slot == 20 {
			early, _ = s.file.Size()
		}
	}
	require.Equal(t, 200*150, visits)
	require.Greater(t, s.Stats().BytesWritten, 50*total, "otherwise this would prove nothing")
	size, _ := s.file.Size()
	require.LessOrEqual(t, size, early*5/4)
	require.NoError(t, s.Check())
	due(t, s, 1200, func(r *Record) { require.NoError(t, r.Delete()) })
	for range 4 {
		require.NoError(t, s.checkpointNow())
	}
	size, free := s.file.Size()
	require.EqualValues(t, size, len(fs.Data(extent.Name)), "Stats are correct")
	require.Less(t, size-free, int64(200<<10))
	require.NoError(t, s.Check())
}

// TestLogHasDifferences: a visit that changes a few bytes of a record takes a few bytes of log,
// even if the record was detached.
func TestLogHasDifferences(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), logged())
	data := bytes.Repeat([]byte("0123456789"), 20)
	for i := range 1000 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 0, string(data))
	}
	require.NoError(t, s.Sync())
	before := s.Stats().LogSize
	n := 0
	due(t, s, 1, func(r *Record) {
		if n++; n%2 == 0 {
			r = r.Detach()
		}
		copy(r.Data[40:], "abcdefgh")
		require.NoError(t, r.Reschedule(at(7), r.Data))
	})
	require.NoError(t, s.Sync())
	require.Less(t, s.Stats().LogSize-before, int64(1000*20))
}

// TestGroupCommit: changes survive a power failure once Options.Commit has passed, and may be lost
// before.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, o := vfs.NewMem(), logged()
		o.Commit, o.test.pending = time.Second, 4<<10
		s := mustOpen(t, fs, o)
		mustAdd(t, s, "https://a.test/", 5, "x")
		synctest.Wait()
		time.Sleep(time.Second - 1)
		synctest.Wait()
		require.Equal(t, 0, fewestAfterCrash(t, s, fs))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 1, fewestAfterCrash(t, s, fs))
		require.NoError(t, s.Close())
	})
}

// fewestAfterCrash returns the minimum number of records after several power failures.
func fewestAfterCrash(t *testing.T, of *Store, fs *vfs.Mem) int {
	fewest := 1 << 30
	for seed := range uint64(20) {
		of.mu.Lock() // guards the mapped file
		crashed := fs.Crash(rand.New(rand.NewPCG(seed, 0)))
		of.mu.Unlock()
		s := mustOpen(t, crashed, logged())
		fewest = min(fewest, len(contents(t, s)))
		require.NoError(t, s.Close())
	}
	return fewest
}

// TestStats checks the counts.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := mustOpen(t, vfs.NewMem(), Options{Unit: time.Minute, Commit: -1})
		defer s.Close()
		require.True(t, start.Truncate(time.Minute).Equal(s.Now()))
		var items []Item
		for i := range 6 {
			items = append(items, Item{fmt.Sprint("https://a.test/", i), start.Add(time.Minute), []byte("data")})
		}
		added, err := s.AddBatch(items)
		require.NoError(t, err)
		require.Equal(t, 6, added)
		n := 0
		for r, err := range s.Due(t.Context(), start.Add(time.Minute)) {
			require.NoError(t, err)
			if n++; n > 2 {
				require.NoError(t, r.Reschedule(start.Add(time.Hour), r.Data))
			}
		}
		time.Sleep(5 * time.Minute)
		got := s.Stats()
		require.Equal(t, time.Since(got.Now.Add(time.Minute)), got.Lag)
		require.True(t, start.Add(time.Minute).Truncate(time.Minute).Equal(got.Now))
		require.EqualValues(t, 6, got.Records)
		require.EqualValues(t, 2, got.Due)
		require.EqualValues(t, 2, got.Out)
		require.EqualValues(t, 2, got.Buckets)
	})
}

// TestStatsDuringASpread: records that are due and wait for their move are due.
func TestStatsDuringASpread(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	for i := range 100 {
		mustAdd(t, s, fmt.Sprint(i), 1001, "x")
		require.NoError(t, s.Update(fmt.Sprint(i), []byte("m")))
	}
	s.o.test.work = nil // so that the spread stays
	_, err := s.advanceTo(t.Context(), 1001)
	require.NoError(t, err)
	require.NotEmpty(t, s.split.into)
	require.EqualValues(t, 100, s.Stats().Due)
	require.Equal(t, []int64{100}, s.Upcoming(at(1001)))
}
