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
	Due     int64 // of Records, those that are due
	Out     int64 // of Due, those that were handed out and not given back
	Buckets int   // that have records
	Slot    int64 // the current one

	Added       int64 // records
	Rescheduled int64 // records
	Messages    int64 // left by Update and Delete
	Merged      int64 // messages, into records
	Split       int64 // records that moved from a coarse bucket to a finer one
	Replayed    int64 // changes, when the store was opened
	Cut         int64 // bytes at the end of the log that were not whole then, as after a crash
	Flushes     int64 // writes of up to a megabyte each
	Checkpoints int64

	UserBytes    int64 // ids and data that were added or rescheduled
	BytesRead    int64 // from all files
	BytesWritten int64 // to all files
	DiskSize     int64 // bytes of the file with the buckets, free room in it included
	LogSize      int64
	BufferUsed   int64 // bytes, in whole pages
	BufferSize   int64

	// Lag is how long ago the current slot should have ended; 0 if it is not over yet.
	Lag time.Duration
	// SlotRecords were given back in the slot before this one, which took SlotTime. Deadline is the
	// time that each of them may have taken if the slot was not to last longer than its unit.
	SlotRecords int64
	SlotTime    time.Duration
	Deadline    time.Duration
}

// WriteAmplification returns how many bytes were written for each byte of the user's.
func (t Stats) WriteAmplification() float64 {
	if t.UserBytes == 0 {
		return 0
	}
	return float64(t.BytesWritten) / float64(t.UserBytes)
}

// Stats returns what the store holds and did.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.stats
	t.Records, t.Out, t.Slot = s.records, s.out, s.calendar.now
	s.eachBucket(func(b *bucket) {
		if b.left() > 0 {
			t.Buckets++
		}
	})
	for _, b := range s.due {
		t.Due += int64(b.left())
	}
	t.BytesRead, t.BytesWritten = s.fs.read.Load(), s.fs.written.Load()
	t.DiskSize = int64(s.space.size()) * grain
	if s.log != nil {
		t.LogSize = s.logEnd + int64(len(s.log.pending))
	}
	t.BufferUsed = int64(s.pool.used) * int64(s.pool.size)
	t.BufferSize = int64(s.pool.limit) * int64(s.pool.size)
	// A slot that lies ahead, as after a clock was set back, is not late.
	t.Lag = max(0, time.Since(s.Start(s.calendar.now+1)))
	t.SlotRecords, t.SlotTime = s.pace.records, s.pace.took
	if t.SlotRecords > 0 {
		t.Deadline = s.o.Unit / time.Duration(t.SlotRecords)
	}
	return t
}

// pace measures slots.
type pace struct {
	began   time.Time // of the current slot
	before  int64     // rescheduled until then
	records int64     // of the slot before
	took    time.Duration
}

// advance ends a slot. It requires that s.mu is held.
func (p *pace) advance(s *Store) {
	now := time.Now()
	if !p.began.IsZero() {
		p.took, p.records = now.Sub(p.began), s.stats.Rescheduled-p.before
	}
	p.began, p.before = now, s.stats.Rescheduled
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
