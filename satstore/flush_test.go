package satstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A gatedFS lets writes to the buckets wait until its gate is open, or fail.
type gatedFS struct {
	*vfs.Mem
	gate chan struct{}
	fail error
}

type gatedFile struct {
	vfs.File
	fs *gatedFS
}

func (g *gatedFS) Create(name string) (vfs.File, error) {
	f, err := g.Mem.Create(name)
	if name == dataName && err == nil {
		f = gatedFile{f, g}
	}
	return f, err
}

func (f gatedFile) WriteAt(b []byte, at int64) (int, error) {
	if at >= grain { // the rest is no bucket
		<-f.fs.gate
		if f.fs.fail != nil {
			return 0, f.fs.fail
		}
	}
	return f.File.WriteAt(b, at)
}

// behindGate returns a store whose buffers are being written to a disk that does not answer, and
// what it holds: a record of 1,000 bytes in each slot from 1 on.
func behindGate(t *testing.T) (*gatedFS, *Store, map[string]string) {
	t.Helper()
	fs := &gatedFS{Mem: vfs.NewMem(), gate: make(chan struct{})}
	s, err := open(fs, Options{
		Start: 0x100, Commit: -1, Buffer: 64 << 10, Page: 1 << 10, Radix: 8, Horizon: 5000,
	})
	require.NoError(t, err)
	want := map[string]string{}
	for i := 0; s.flushing == nil; i++ {
		addLong(t, s, want, i)
	}
	return fs, s, want
}

func addLong(t *testing.T, s *Store, want map[string]string, i int) {
	t.Helper()
	id, data := fmt.Sprint("https://a.test/", i), strings.Repeat("long", 250)
	slot := s.Now() + 1 + int64(i)
	mustAdd(t, s, id, slot, data)
	want[id] = fmt.Sprint(slot, " ", data)
}

func (f *flush) waits() bool {
	select {
	case <-f.done:
		return false
	default:
		return true
	}
}

// TestNobodyWaitsForAFlush: while buffers are being written, the store takes records and messages,
// hands out, and shows what is on its way to the disk.
func TestNobodyWaitsForAFlush(t *testing.T) {
	fs, s, want := behindGate(t)
	n := len(want)
	for i := range 15 {
		addLong(t, s, want, n+i)
	}
	require.NoError(t, s.Update(fmt.Sprint("https://a.test/", n-1), []byte("message")))
	want[fmt.Sprint("https://a.test/", n-1)] = fmt.Sprint(s.Now()+int64(n), " message")
	require.NoError(t, s.Sync())
	require.Equal(t, want, contents(t, s))
	for i := range n { // through slots whose records are being written
		require.NoError(t, s.Advance())
		id := fmt.Sprint("https://a.test/", i)
		require.Equal(t, []string{id}, dueIDs(t, s, func(r *Record) {
			require.Equal(t, want[id], fmt.Sprint(r.Slot, " ", string(r.Data)))
			require.NoError(t, r.Reschedule(r.Slot+3000, []byte("visited")))
			want[id] = fmt.Sprint(r.Slot+3000, " visited")
		}))
	}
	require.True(t, s.flushing.waits())
	require.Equal(t, want, contents(t, s))
	killed := mustOpen(t, fs.Mem.Clone(), s.o)
	require.Equal(t, want, contents(t, killed), "and a crash meanwhile costs nothing")
	close(fs.gate)
	require.NoError(t, s.checkpointNow())
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestRoomOfBucketsThatDied: a bucket whose records have all moved on while it was being written
// takes no room on disk in the end.
func TestRoomOfBucketsThatDied(t *testing.T) {
	fs, s, want := behindGate(t)
	for range len(want) + 1 {
		dueIDs(t, s, func(r *Record) { require.NoError(t, r.Delete()) })
		require.NoError(t, s.Advance())
	}
	require.Empty(t, contents(t, s))
	require.True(t, s.flushing.waits())
	close(fs.gate)
	require.NoError(t, s.checkpointNow())
	require.EqualValues(t, 1, s.space.size(), "no more than the header")
	require.Zero(t, s.pool.used)
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestFlushFails: what cannot be written stays in memory, is tried again, and no room is lost.
func TestFlushFails(t *testing.T) {
	fs, s, want := behindGate(t)
	fs.fail = errors.New("bad disk")
	close(fs.gate)
	err := s.checkpointNow()
	require.ErrorIs(t, err, fs.fail)
	used := s.pool.used
	require.Positive(t, used)
	require.ErrorIs(t, s.checkpointNow(), fs.fail)
	require.Equal(t, used, s.pool.used)
	require.Equal(t, want, contents(t, s))
	fs.fail = nil
	require.NoError(t, s.checkpointNow())
	require.Zero(t, s.pool.used)
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Check())
	free := uint32(0)
	for _, f := range s.space.free {
		free += f.n
	}
	require.Zero(t, free, "a failed attempt leaves no holes")
	require.NoError(t, s.Close())
}

// TestNearSlotsStayInMemory: a flush leaves the nearest buffers alone, up to a quarter of the
// memory, and takes all others.
func TestNearSlotsStayInMemory(t *testing.T) {
	fs, s, _ := behindGate(t)
	near, last := 0, int64(0)
	s.eachBucket(func(b *bucket) {
		if b.records.frozen.count > 0 {
			last = b.start
		} else if b.pages() > 0 {
			require.Zero(t, last, "only buckets before those that are being written")
			near += b.pages()
		}
	})
	require.Positive(t, near)
	require.LessOrEqual(t, near, s.pool.limit/4)
	close(fs.gate)
	require.NoError(t, s.Close())
}

// TestUnloggedCheckpoints: a store without a log goes back by no more than some buffers.
func TestUnloggedCheckpoints(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{Start: 1, NoLog: true, Buffer: 32 << 10, Page: 1 << 10, inline: true}
	s := mustOpen(t, fs, o)
	before := s.Stats().Checkpoints
	const size, count = 1000, 2000
	for i := range count {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 50, strings.Repeat("x", size))
	}
	require.Greater(t, s.Stats().Checkpoints, before+5)
	found := mustOpen(t, fs.Clone(), o)
	lost := count - len(contents(t, found))
	require.Positive(t, lost)
	require.Less(t, lost*size, int(o.Buffer)*(unloggedFlushes+3))
	require.NoError(t, found.Check())
}
