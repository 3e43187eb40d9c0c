package satstore

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Stats tells what a [Store] holds, and what it did since it was opened.
type Stats struct {
	Records int64 // in the store: those that are out, and deleted ones until they would be due, too
	Due     int64 // of Records, those of units up to Now
	Out     int64 // of Due, those that were handed out and not given back
	Buckets int   // that have records
	Now     time.Time

	// Lag is by how much the store is behind the clock, in time beyond its current unit.
	Lag time.Duration

	Added       int64 // records
	Rescheduled int64 // records
	Messages    int64 // left by Update and Delete
	Merged      int64 // messages, into records
	Split       int64 // records that moved from a shared bucket to a finer one
	Replayed    int64 // changes, when the store was opened
	Cut         int64 // bytes at the end of the log that were not whole then, as after a crash
	Writes      int64 // of buffers, up to a megabyte each
	Checkpoints int64

	UserBytes    int64 // ids and data that were added or rescheduled
	BytesRead    int64 // from all files
	BytesWritten int64 // to all files
	DiskSize     int64 // bytes of the buckets, the index of ids and the logs
	DiskFree     int64 // of DiskSize, room that will be used again or given back
	LogSize      int64 // of DiskSize, that of the logs
	BufferUsed   int64 // bytes, in whole pages
	BufferSize   int64

	// Damage is what was found damaged when the store was opened, and could be done without: one
	// of the two copies of the checkpoint. nil if nothing was.
	Damage error
}

// Stats returns what the store holds and did.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.stats
	t.Records, t.Out, t.Now = s.records, s.out, timeOf(s.calendar.Now(), s.o.Unit)
	for b := range s.buckets {
		if b.left() > 0 {
			t.Buckets++
		}
	}
	for _, b := range s.due {
		t.Due += int64(b.left())
	}
	// A unit that lies ahead, as after a clock was set back, is not late.
	t.Lag = max(0, time.Since(t.Now.Add(s.o.Unit)))
	t.BytesRead, t.BytesWritten = s.fs.read.Load(), s.fs.written.Load()
	t.DiskSize, t.DiskFree = s.file.Size()
	if s.log != nil {
		t.LogSize, _ = s.log.Size()
	}
	t.DiskSize += s.ids.Size() + t.LogSize
	t.BufferUsed, t.BufferSize = s.pool.Used(), s.pool.Limit()
	return t
}

// A meter counts the bytes that go through a file system.
type meter struct {
	vfs.FS
	read, written atomic.Int64
}

// Open opens a file and counts what goes through it.
func (m *meter) Open(name string) (vfs.File, error) { return m.wrap(m.FS.Open(name)) }

// Create makes a file and counts what goes through it.
func (m *meter) Create(name string) (vfs.File, error) { return m.wrap(m.FS.Create(name)) }

func (m *meter) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return meteredFile{f, m}, nil
}

type meteredFile struct {
	vfs.File
	m *meter
}

var _ io.ReaderAt = meteredFile{}

func (f meteredFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.m.read.Add(int64(n))
	return n, err
}

func (f meteredFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	f.m.written.Add(int64(n))
	return n, err
}
