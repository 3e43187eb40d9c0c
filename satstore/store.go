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

// A Store keeps records in the order of the times when they are due. Its methods are safe for
// concurrent use.
type Store struct {
	fs   *meter
	o    Options
	lock io.Closer // keeps other processes out

	// These have locks of their own.
	ids *idset.Set
	log *wal.Log // nil until the first checkpoint after Open

	// These are locked in this order, and before those of the layers.
	walking     sync.Mutex // held by the one Due that runs; guards reader
	adding      sync.Mutex // held from a look-up of ids to the change that depends on it
	checkpoints sync.Mutex // held by the one checkpoint that is under way
	mu          sync.Mutex // guards the state and what follows

	state
	reader     *reader         // of Due
	unwritten  []*extent.Group // that could not be written, and nobody is writing
	generation uint32          // of the next checkpoint
	lastLog    uint64          // number of the newest log file; guarded by checkpoints
	leftovers  []string        // files that the next checkpoint makes superfluous
	out        int64           // records in callers' hands
	failed     error           // why nothing can be changed
	broken     bool            // for good: it is not known what is on disk
	closed     bool
	changed    sync.Cond // what somebody may wait for: there is room, a split is done, it failed
	stats      Stats

	tasks
	chunks sync.Pool
}

// lockName is the file that keeps a second process out.
const lockName = "lock"

// Open opens the store in a directory, or makes one, with the directory, if there is none.
// Options that do not fit the store that is there are [ErrOptions]; a store that another process
// has open is [ErrLocked].
func Open(dir string, o Options) (*Store, error) {
	if err := vfs.MakeDir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("satstore: make directory: %w", err)
	}
	return open(vfs.OS(dir), o)
}

func open(fs vfs.FS, o Options) (*Store, error) {
	s, err := load(fs, o)
	if err == nil {
		s.start()
	}
	return s, err
}

// load brings a store to the state before the crash or the Close.
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

// lockStore makes a store that nothing has been read for, and keeps others out.
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
	s.numbers = make([]*bucket, 1) // number 0 stands for none
	s.ids = idset.New(s.fs)
	s.changed.L = &s.mu
	s.tasks.make(s)
	return s, nil
}

// Now returns the beginning of the current unit: the latest one that a [Store.Due] has got to. It
// never goes back.
func (s *Store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return timeOf(s.calendar.Now(), s.o.Unit)
}

// Sync returns once everything that was done before is on disk: not even a power failure can take
// it back. If the store became read-only, Sync tries again what had failed, and the store can be
// written to once that works.
func (s *Store) Sync() error {
	s.mu.Lock()
	// What failed halfway cannot be tried again: memory and disk may disagree. Opening the store
	// anew goes by the disk alone.
	if s.closed || s.broken {
		defer s.mu.Unlock()
		return s.refusal()
	}
	log, again := s.log, s.failed != nil
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
	if again && !s.broken {
		s.failed = nil
		s.askAll()
	}
	return s.refusal()
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
	s.changed.Broadcast()
	s.mu.Unlock()
	s.tasks.end()
	var err error
	if !s.broken {
		// If there is no room for a checkpoint, the log has everything all the same.
		if err = s.checkpoint(true); err != nil && s.log != nil {
			err = errors.Join(err, s.log.Sync())
		}
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) closeFiles() (err error) {
	if s.log != nil {
		err = s.log.Close()
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return errors.Join(err, s.ids.Close(), s.lock.Close())
}

// begin locks s.mu for a change that takes up to so many bytes of log, once there is room for it.
func (s *Store) begin(bytes int) error {
	for {
		s.work()
		s.mu.Lock()
		if err := s.refusal(); err != nil {
			s.mu.Unlock()
			return err
		}
		switch {
		case s.pool.Full(8):
			s.ask(&s.flusher)
			s.await()
			s.mu.Unlock()
		case !s.log.Room(bytes):
			s.mu.Unlock()
			if err := s.flushLog(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// note writes changes to the log, all or none, before they are made. It requires that begin has
// locked s.mu. After an error nothing must be changed.
func (s *Store) note(changes ...*wal.Change) (survives bool, err error) {
	if survives, err = s.log.Append(changes...); err != nil {
		return false, s.fail(err)
	}
	return survives, nil
}

// end unlocks s.mu after a change. From then on the change outlives the process; one that was too
// large for that is written first.
func (s *Store) end(survives bool) error {
	if s.pool.Full(5) {
		s.ask(&s.flusher)
	}
	if s.logIsLong() {
		s.ask(&s.checkpointer)
	}
	s.mu.Unlock()
	if !survives {
		return s.flushLog()
	}
	return nil
}

func (s *Store) flushLog() error {
	if err := s.log.Flush(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.fail(err)
	}
	return nil
}

// logIsLong tells when a replay would take longer than the buffers are worth.
func (s *Store) logIsLong() bool {
	_, newest := s.log.Size()
	return newest > max(s.o.Buffer, int64(s.o.test.pending/4))
}

// refusal tells why nothing can be changed. It requires that s.mu is held.
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
	s.failed = err
	s.broken = s.broken || errors.Is(err, wal.ErrBroken)
	s.changed.Broadcast()
	return s.refusal()
}
