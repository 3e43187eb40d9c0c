package satstore

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// A Store keeps records in the order of their slots. Its methods are safe for concurrent use.
type Store struct {
	fs   *meter
	o    Options
	lock io.Closer
	data vfs.File

	// These are locked in this order, if several are. There are four since they are held for very
	// different times: a walk for as long as its caller takes, a look-up or a checkpoint while the
	// disk is read or written, a commit during a sync. Whoever gives a record back mostly needs mu
	// alone, so a sync lets go of it.
	dueMu    sync.Mutex // held by the one Due that runs
	idsMu    sync.Mutex // guards ids
	commitMu sync.Mutex // guards the log as far as updateLog says so
	mu       sync.Mutex // guards everything below

	ids        *idset.Set
	log        *updateLog
	pending    *vfs.Map // for the log; nil if there is no log, or no such thing
	oldLog     uint64   // number of a log that was replayed and is not replaced yet
	logEnd     int64    // log.end
	calendar   *calendar
	due        []*bucket // of slots up to now, the oldest first
	split      *split    // under way, or nil
	places     places
	numbers    []*bucket // by bucket.number
	spare      []uint16  // numbers that are not in use
	nextBucket uint64
	nextSeq    uint64
	records    int64
	out        int64
	space      *space
	pool       *pagePool
	scratch    []byte      // for one entry
	images     chan []byte // for extents that are being written
	sealer     codec       // of the flush that is under way
	flushing   *flush      // buffers that are being written, or could not be; nil if none are
	flushed    int64       // bytes, since the last checkpoint
	generation uint32
	saved      savedPlaces
	live       bool // not replaying
	failed     error
	broken     bool // for good: it is not known what is on disk
	closed     bool
	chunks     sync.Pool
	reader     *reader // of Due; guarded by dueMu
	stats      Stats
	pace       pace

	wake    chan struct{} // the committer has something to do
	merge   chan struct{} // so may mergeLoop
	stop    chan struct{}
	stopped sync.WaitGroup
}

// lockName is the file that keeps a second process out, and dataName the one with the buckets.
const (
	lockName = "lock"
	dataName = "buckets"
)

// Open opens the store in a directory, which it makes if there is none. Options that cannot be, or
// are not those of the store that is there, are [ErrOptions]; a store that another process has open
// is [ErrLocked].
func Open(dir string, o Options) (*Store, error) {
	if err := vfs.MakeDir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("satstore: make directory: %w", err)
	}
	return open(vfs.OS(dir), o)
}

func open(fs vfs.FS, o Options) (*Store, error) {
	s, err := load(fs, o)
	if err != nil {
		return nil, err
	}
	if !s.o.NoLog && s.o.Commit > 0 {
		s.stopped.Go(s.commitLoop)
	}
	if !s.o.inline {
		s.stopped.Go(s.mergeLoop)
	}
	return s, nil
}

// load brings a store to the state before the crash or the Close.
func load(fs vfs.FS, o Options) (*Store, error) {
	if !o.known() {
		return nil, ErrOptions
	}
	o = o.withDefaults()
	lock, err := fs.Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("satstore: lock: %w", err)
	}
	s := newStore(fs, o, lock)
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// newStore makes a store that nothing has been read for.
func newStore(fs vfs.FS, o Options, lock io.Closer) *Store {
	s := &Store{fs: &meter{FS: fs}, o: o, lock: lock, space: &space{end: 1}}
	s.pool = newPagePool(o)
	s.sealer = codec{kind: o.Compression}
	s.numbers = make([]*bucket, 1) // number 0 stands for none
	s.ids = idset.New(s.fs)
	s.wake, s.merge = make(chan struct{}, 1), make(chan struct{}, 1)
	s.stop = make(chan struct{})
	return s
}

// Now returns the current slot. It moves by [Store.Advance] alone, and never back: a crawler calls
// that as long as Now is before the [Store.Slot] of the time.
func (s *Store) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calendar.now
}

// Slot returns the slot that a time falls into, counted in units from 1970 on: negative ones came
// before. Times too far away to be counted are in the first or the last slot.
func (s *Store) Slot(t time.Time) int64 { return slotOf(t, s.o.Unit) }

// Start returns when a slot begins. If that is too far away for a time, it is the earliest or the
// latest one, 146 thousand million years from 1970.
func (s *Store) Start(slot int64) time.Time { return startOf(slot, s.o.Unit) }

// maxSlot bounds slots, so that sums of them do not overflow.
const maxSlot = 1 << 60

// An Item is a record to be added.
type Item struct {
	ID   string
	Slot int64 // when it is due; a passed one means at once
	Data []byte
}

// Add adds one record, unless its id is known: that is no error. An id that is empty or longer than
// MaxID, or data longer than MaxData, are [ErrSize]. [Store.AddBatch] is faster for many.
func (s *Store) Add(id string, slot int64, data []byte) (added bool, err error) {
	n, err := s.AddBatch([]Item{{id, slot, data}})
	return n == 1, err
}

// Advance begins the next slot. Records of passed slots stay due, before those of later ones. If
// there is an error, [Store.Now] tells whether the slot has begun. It is refused, and the store goes
// on, while records of 8,192 passed slots wait to be given back.
func (s *Store) Advance() error {
	s.lockAll()
	defer s.unlockAll()
	if err := s.refusal(); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return s.fail(err)
	}
	if n := len(s.due); n >= maxHeld && s.due[n-1].gone > 0 {
		return fmt.Errorf("satstore: advance: records of %d passed slots are there still", n)
	}
	// The log has only that a slot began, not what moved: a replay repeats the same moves. That is
	// why what is left of a split is finished first, and what comes of this one at the end.
	s.pace.advance(s)
	s.note(&change{kind: changeAdvance}, nil)
	s.advance()
	s.keep(nil)
	if s.wantsRelief() || s.logIsLong() {
		if err := s.relieve(); err != nil {
			return s.fail(err)
		}
	}
	if err := s.settle(); err != nil {
		return s.fail(err)
	}
	// A walk that dropped what was deleted may have filled the half, and then this is in none.
	if s.log != nil && s.log.spilled() {
		if err := s.commitLocked(false); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// Close writes everything and closes the files. The store cannot be used afterwards, even if there
// is an error; then it is as after a crash.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	// The committer takes locks, so none may be held while it is waited for. Nobody can change
	// anything in between, as closed is set.
	close(s.stop)
	s.stopped.Wait()

	s.lockAll()
	defer s.unlockAll()
	var err error
	if !s.broken {
		s.saved.due = true // the next Open then needs not read all records to find their places
		// If there is no room for a checkpoint, the log has everything all the same.
		if err = s.checkpoint(); err != nil && s.log != nil {
			err = errors.Join(err, s.commitLocked(!s.o.NoSync))
		}
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) closeFiles() (err error) {
	if s.log != nil {
		err = errors.Join(err, s.log.file.Close())
	}
	// A flush writes to the data file in the background, whatever happened to the store.
	if s.flushing != nil {
		<-s.flushing.done
	}
	if s.pending != nil {
		err = errors.Join(err, s.pending.Close())
	}
	if s.data != nil {
		err = errors.Join(err, s.data.Close())
	}
	return errors.Join(err, s.ids.Close(), s.lock.Close())
}
