package satstore

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A Store holds records in the order of their due times. Its methods are safe for concurrent use.
type Store struct {
	fs   *meter
	o    Options
	lock io.Closer // excludes other processes

	// These two have locks of their own.
	ids *idset.Set
	log *wal.Log // nil until the first checkpoint after Open

	// Locked in this order, and before the locks of the layers.
	walking     sync.Mutex // held by the Due that runs; guards cursor
	adding      sync.Mutex // held from a look-up of ids to the change that depends on it
	checkpoints sync.Mutex // held during a checkpoint
	mu          sync.Mutex // guards the state and the fields below

	state
	cursor      *cursor         // of Due
	unwritten   []*extent.Group // that could not be written
	lastLog     uint64          // number of the newest log file; guarded by checkpoints
	first       *wal.File       // becomes log with the first checkpoint; guarded likewise
	leftovers   []string        // files to remove after the next checkpoint
	out         int64           // records handed out and not returned
	unmergeable bool            // the id index has damage that ends its merges
	idChanges   int64           // since the last checkpoint; they are in memory
	failed      error           // why the store is read-only
	failures    int             // calls of fail
	broken      bool            // read-only for good: the state of the disk is unknown
	closed      bool
	changed     sync.Cond // there is room, a split has advanced, or a write has failed
	stats       Stats

	tasks
	chunks sync.Pool
}

// lockName is the file that excludes other processes.
const lockName = "lock"

// Open opens the store in a directory, and creates both if they do not exist. Options that
// contradict an existing store are [ErrOptions]. A store that another process has open is
// [ErrLocked].
//
// A damaged block of records or messages does not prevent Open of a store that was closed. After a kill or
// a power failure, Open reads the blocks that are newer than what the last checkpoints say of them, and
// those that the log refers to: damage there is a [CorruptError], and [Repair] helps.
func Open(dir string, o Options) (*Store, error) {
	files, err := vfs.OpenDir(dir, 0o700)
	if err != nil {
		return nil, fmt.Errorf("satstore: make directory: %w", err)
	}
	s, err := open(files, o)
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w: %s", err, dir)
	}
	return s, err
}

func open(fs vfs.FS, o Options) (*Store, error) {
	s, err := load(fs, o)
	if err == nil {
		s.start()
	}
	return s, err
}

// load loads a store without starting its goroutines.
func load(fs vfs.FS, o Options) (*Store, error) {
	s, err := lockStore(fs, o)
	if err != nil {
		return nil, err
	}
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// lockStore locks a store against other processes, without reading anything.
func lockStore(fs vfs.FS, o Options) (*Store, error) {
	lock, err := fs.Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("satstore: lock: %w", err)
	}
	o = o.withDefaults()
	s := &Store{fs: &meter{FS: fs}, o: o, lock: lock}
	s.pool = extent.NewPool(o.Buffer, o.test.page)
	s.numbers = make([]*bucket, 1) // number 0 means none
	s.byID = map[uint64]*bucket{}
	if s.ids, err = idset.Open(s.fs, idset.State{}); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.changed.L = &s.mu
	s.makeTasks()
	return s, nil
}

// Now returns the beginning of the current unit: the latest that a [Store.Due] has reached. It
// never goes back.
func (s *Store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return timeOf(s.calendar.Now(), s.o.Unit)
}

// Sync returns once all earlier changes are on disk and survive a power failure. If the store is
// read-only, Sync retries what failed. If that succeeds, the store is writable again.
func (s *Store) Sync() error {
	s.mu.Lock()
	// After a failed fsync, memory and disk may disagree. Only Open helps then, which uses the disk
	// alone.
	if s.closed || s.broken {
		defer s.mu.Unlock()
		return s.refusal()
	}
	log, again, failures := s.log, s.failed != nil, s.failures
	s.mu.Unlock()
	var err error
	if log != nil {
		err = log.Sync()
	}
	if err == nil && again {
		err = s.checkpoint(false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return s.fail(err)
	}
	if again && s.failures == failures { // a task may have failed during the checkpoint
		s.failed = nil
		s.requestAll()
	}
	return s.refusal()
}

// Close writes everything and closes the files. The store cannot be used afterwards. After an
// error, its files are as after a crash: changes since the last Sync may not survive a power failure.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.tasks.end()
	// This waits for the checkpoint of a Sync; no other one begins. Even if it is impossible, since the
	// disk is full or a sync has failed, the log has everything.
	err := s.checkpoint(true)
	if err != nil && s.log != nil {
		err = errors.Join(err, s.log.Sync())
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) closeFiles() (err error) {
	if s.log != nil {
		err = s.log.Close()
	}
	if s.first != nil {
		err = errors.Join(err, s.first.Close())
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	s.ids.Close()
	return errors.Join(err, s.lock.Close())
}

// change makes a change of a maximum size in the log. With s.mu held, it calls do, which logs the
// change and applies it to the state, or refuses it. When change returns, the change survives the
// process.
func (s *Store) change(size int, do func() (survives bool, err error)) error {
	survives, err := s.changeState(size, do)
	if err == nil && !survives {
		err = s.flushLog()
	}
	return err
}

func (s *Store) changeState(
	size int, do func() (survives bool, err error),
) (survives bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = s.awaitRoom(size); err != nil {
		return true, err
	}
	if survives, err = do(); err == nil {
		s.requestWork()
	}
	return survives, err
}

// awaitRoom waits until there is room for a change. It requires that s.mu is held, and releases it
// to wait.
func (s *Store) awaitRoom(size int) error {
	for {
		s.idle()
		if err := s.refusal(); err != nil {
			return err
		}
		switch {
		case s.pool.Full(8):
			s.request(&s.flusher)
			s.wait()
		case !s.log.Room(size):
			s.mu.Unlock()
			err := s.log.Flush()
			s.mu.Lock()
			if err != nil {
				return s.fail(err)
			}
		default:
			return nil
		}
	}
}

// logChange writes a change to the log before it is made. It requires that s.mu is held, and that
// there is room. After an error the caller must not make the change.
func (s *Store) logChange(changes ...*wal.Change) (survives bool, err error) {
	if survives, err = s.log.Append(changes...); err != nil {
		return false, s.fail(err)
	}
	return survives, nil
}

// requestWork asks for the background work that a change may have made necessary.
func (s *Store) requestWork() {
	if s.pool.Full(5) {
		s.request(&s.flusher)
	}
	if s.logIsLong() {
		s.request(&s.checkpointer)
	}
	if s.split != nil {
		s.request(&s.splitter)
	}
}

func (s *Store) flushLog() error {
	if err := s.log.Flush(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.fail(err)
	}
	return nil
}

// idChange is the memory that the change of an id takes until a checkpoint, in bytes.
const idChange = 64

// logIsLong reports whether it is time for a checkpoint. Visits may log a small part of their records, and a
// split nearly nothing: then the data file would grow by what a checkpoint frees.
func (s *Store) logIsLong() bool {
	_, newest := s.log.Size()
	return max(newest, s.idChanges*idChange) > s.logLimit() || s.file.Wasteful(max(s.o.Buffer, minGarbage))
}

func (s *Store) logLimit() int64 { return max(s.o.Buffer, int64(s.o.test.pending/4)) }

// awaitCheckpoint waits while changes of ids take twice their memory, since the disk needs so long for the
// checkpoint that frees it. Visits that reschedule go on.
func (s *Store) awaitCheckpoint() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.refusal() == nil && s.idChanges*idChange > 2*s.logLimit() {
		s.request(&s.checkpointer)
		s.wait()
	}
}

// minGarbage is worth the syncs of a checkpoint, even if the buffers are tiny.
const minGarbage = 1 << 20

// refusal returns why the store cannot be changed. It requires that s.mu is held.
func (s *Store) refusal() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.failed != nil:
		return fmt.Errorf("%w: %w", ErrReadOnly, s.failed)
	}
	return nil
}

// fail makes the store read-only until a Sync succeeds. It requires that s.mu is held.
func (s *Store) fail(err error) error {
	s.failures++
	if !s.broken {
		s.failed, s.broken = err, errors.Is(err, wal.ErrBroken)
	}
	s.changed.Broadcast()
	return s.refusal()
}
