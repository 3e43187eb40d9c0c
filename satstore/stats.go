package satstore

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Stats describes the contents of a [Store], and its work since Open.
type Stats struct {
	Records int64 // in the store
	Due     int64 // of Records, those due up to Now
	Out     int64 // handed out and not returned, also if deleted since; with the block that Due hands out now
	Buckets int   // that have records
	Now     time.Time

	// Lag is the time since the end of the current unit: how far the store is behind the clock.
	Lag time.Duration

	Added       int64 // records
	Split       int64 // records that moved from a coarse bucket to a finer one
	Replayed    int64 // changes that Open read from the log
	Cut         int64 // bytes at the end of the log that Open found incomplete, as after a crash
	Checkpoints int64

	BytesRead    int64 // from all files
	BytesWritten int64 // to all files
	DiskSize     int64 // bytes of data, id index and logs
	DiskFree     int64 // of DiskSize, free for reuse; returned to the system once it is at the end of a file
	LogSize      int64 // of DiskSize, the logs

	// Damage is damage that the store works around: one of the two copies of the checkpoint was
	// unreadable, or a file of the id index cannot be merged. Due reports the second, too, once. Then
	// look-ups get slower, since nothing is merged, and Add, Update and Delete fail for ids in the
	// damaged block, until [Repair]. nil means none.
	Damage error
}

// Stats returns the current [Stats].
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.stats
	t.Records, t.Out, t.Now = s.records, s.out, timeOf(s.calendar.Now(), s.o.Unit)
	for b := range s.buckets {
		if b.left() > 0 {
			t.Buckets++
		}
		if b.start <= s.calendar.Now() && !s.isAside(b) {
			t.Due += int64(b.left())
		}
	}
	// A unit ahead of the clock, which may have been set back, is not late.
	t.Lag = max(0, time.Since(t.Now.Add(s.o.Unit)))
	t.BytesRead, t.BytesWritten = s.fs.read.Load(), s.fs.written.Load()
	t.DiskSize, t.DiskFree = s.file.Size()
	if s.log != nil {
		t.LogSize, _ = s.log.Size()
	}
	t.DiskSize += s.ids.Size() + t.LogSize
	return t
}

// A meter counts the bytes read from and written to a file system.
type meter struct {
	vfs.FS
	read, written atomic.Int64
}

// Open opens a file and counts its bytes.
func (m *meter) Open(name string) (vfs.File, error) { return m.wrap(m.FS.Open(name)) }

// Create creates a file and counts its bytes.
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
