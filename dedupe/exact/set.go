package exact

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Errors that callers may want to test for, in addition to [ErrCorrupt].
var (
	ErrClosed   = errors.New("exact: set is closed")
	ErrLocked   = errors.New("exact: set is already open, here or in another process")
	ErrTooLarge = errors.New("exact: URL and data are larger than MaxEntry")
	ErrTrimmed  = errors.New("exact: entries were trimmed")
	ErrFailed   = errors.New("exact: disk failed, close the Set and open it again")
)

// MaxEntry is the maximum size of an entry in bytes: its URL, its data, and three more bytes.
const MaxEntry = 1 << 16

// DefaultMemory is the default of Options.Memory, and MinMemory the minimum.
const (
	DefaultMemory = 64 << 20
	MinMemory     = 2 << 20
)

// Options configure a [Set]. The zero Options is fine for tens of millions of URLs.
type Options struct {
	// Memory bounds the memory in bytes: a quarter for the Bloom filter, 3/16 for new URLs, 1/16
	// for the list of the latest URLs, and the rest for deferred ones. 0 means DefaultMemory. One
	// byte per known URL keeps the filter useful; one byte per ten URLs keeps rewrites of the index
	// rare. The index takes another 0.4 % of its size in memory, and a rewrite 1 MB.
	Memory int64
}

// A Set remembers URLs on disk. Its methods are safe for concurrent use.
type Set struct {
	fs      vfs.FS
	lock    io.Closer
	options Options
	key     siphash.Key

	// files is held for reading while files are used without mu, and for writing to close them.
	files sync.RWMutex

	mu        sync.Mutex
	recent    recent // URLs that are known, or deferred
	filter    filter // of all known URLs
	fresh     *table // known URLs, the latest of the log
	frozen    *table // known URLs before those, which the sweep adds to the index
	index     *index // all other known URLs
	sweep     *sweep // nil if there is none
	frozenEnd uint64 // entries below it are in index or frozen
	log       log
	older     []segment // of the log, before the last one
	trimmed   uint64
	indexed   uint64 // entries below it are in index
	deferred  deferred
	onDisk    *manifest // the state known to be on disk
	ahead     bool      // the state in memory is ahead of it
	loading   bool      // the state in memory is incomplete
	garbage   []string  // files to be removed when onDisk no longer names them
	file      uint64    // number of the latest file
	failed    error     // after it, the state on disk is unknown
	closing   bool      // only Close may use it
	closed    bool
	stats     Stats

	segmentSize int64  // at which a segment is full
	stepPages   int64  // of a step of a sweep or of a merge
	between     func() // called between two steps of a merge, without mu; tests set it
}

// Stats has the counters of a [Set] since it was opened.
type Stats struct {
	URLs     uint64 // known, including those from before it was opened
	Trimmed  uint64 // number of the first entry that is not trimmed
	Deferred int    // sightings that the next merge decides on
	Lookups  int64  // calls of Add and Defer
	Recent   int64  // of Lookups, those that the list of the latest URLs answered
	New      int64  // URLs that were certainly new by the Bloom filter
	Pages    int64  // page reads by Add
	Merges   int64  // of deferred sightings
	Sweeps   int64  // completed rewrites of the index
	Read     int64  // bytes read by merges and sweeps
	Written  int64  // bytes written by merges and sweeps, and of deferred sightings
	DiskSize int64  // bytes of the index, and of the files of entries that Trim has not freed
}

// Open opens the Set in a directory, which it creates if necessary. It reads all fingerprints,
// which takes about a second for a gigabyte, and rejects damaged files with a [CorruptError] and those
// of another version with [ErrVersion]. The directory is locked until Close; a second Open returns [ErrLocked].
func Open(dir string, o Options) (*Set, error) {
	files, err := vfs.OpenDir(dir, 0o700)
	if err != nil {
		return nil, fmt.Errorf("exact: create directory: %w", err)
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	o.Memory = max(o.Memory, MinMemory)
	s, err := open(files, o)
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w: %s", err, dir)
	}
	return s, err
}

// open is Open for any file system, and for any memory above 0.
func open(fs vfs.FS, o Options) (*Set, error) {
	lock, err := fs.Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("exact: lock directory: %w", err)
	}
	s := &Set{
		fs: fs, lock: lock, options: o, segmentSize: maxSegment, stepPages: maxAhead,
		recent: newRecent(o.Memory / 16),
		filter: newFilter(o.Memory / 4),
		fresh:  newTable(o.Memory * 3 / 32),
		frozen: newTable(o.Memory * 3 / 32),
		index:  &index{},
	}
	s.deferred = newDeferred(fs, o.Memory, &s.stats.Written)
	if err := s.load(); err != nil {
		_ = s.closeFiles() // the first error says more
		return nil, err
	}
	return s, nil
}

// Add remembers url and reports whether it is new. If several goroutines add the same new URL at
// the same time, Add returns true to one of them. It reads at most one page from disk, and none if
// the Bloom filter or the list of the latest URLs has the answer. For a new URL, it writes an
// entry. After the disk was full, each Add of a new URL may try to write the whole index again, and
// other calls wait for that.
//
// After an error, url was not added.
func (s *Set) Add(url string) (added bool, err error) {
	if len(url) > MaxEntry-maxUvarint {
		return false, ErrTooLarge
	}
	print := s.fingerprint(url) // needs no lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return false, err
	}
	if err := s.payDebt(); err != nil {
		return false, err
	}
	s.stats.Lookups++
	// A deferred URL is in the list, too, but it is not known yet whether it is new.
	if s.recent.has(print) && s.deferred.waiting() == 0 {
		s.stats.Recent++
		return false, nil
	}
	known, sure, err := s.knows(print)
	if err != nil {
		return false, err
	}
	if !known {
		if err := s.makeRoom(); err != nil {
			return false, err
		}
		if err := s.log.append(url); err != nil {
			return false, err
		}
		s.fresh.add(print)
		if m := s.deferred.merge; m != nil && !sure { // it may be one of those
			m.added[print], m.owed = true, true
		}
	}
	if !s.recent.has(print) {
		s.recent.add(print)
	}
	return !known, nil
}

// payDebt does what is due before an Add looks at anything, as it unlocks s.mu, which must be held.
func (s *Set) payDebt() error {
	m := s.deferred.merge
	if m == nil || !m.owed {
		return s.settle()
	}
	if err := s.stepMerge(); err != nil {
		return err
	}
	m.owed = false
	return s.refusal()
}

// fingerprint never returns the zero fingerprint, which stands for none.
func (s *Set) fingerprint(url string) fingerprint { return fingerprint(max(s.key.Sum64(url), 1)) }

// refusal returns why the Set cannot be used. It requires that s.mu is held.
func (s *Set) refusal() error {
	if s.closing {
		return ErrClosed
	}
	return s.broken()
}

// broken is refusal for Close, which goes on while other calls are refused.
func (s *Set) broken() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.failed != nil:
		return fmt.Errorf("%w: %w", ErrFailed, s.failed)
	}
	return nil
}

// pause lets other calls get s.mu.
func (s *Set) pause() {
	s.mu.Unlock()
	defer s.mu.Lock()
	if s.between != nil {
		s.between()
	}
	runtime.Gosched()
}

// knows reports whether a fingerprint is known, and whether the filter alone has the answer. It
// requires that s.mu is held, and unlocks it while it reads a page, unless it is sure.
func (s *Set) knows(f fingerprint) (known, sure bool, err error) {
	if s.filter.addNew(f) {
		s.stats.New++
		return false, true, nil
	}
	for searched := (*index)(nil); ; {
		if s.fresh.has(f) || s.frozen.has(f) {
			return true, false, nil
		}
		if s.index == searched || s.index.count == 0 {
			return false, false, nil
		}
		searched = s.index
		s.stats.Pages++
		s.files.RLock()
		s.mu.Unlock()
		found, err := searched.has(f)
		s.files.RUnlock()
		s.mu.Lock()
		if found || err != nil {
			return found, false, err
		}
		// While s.mu was unlocked, f may have been added, or moved to another index.
		if err := s.refusal(); err != nil {
			return false, false, err
		}
	}
}

// Sync makes all added URLs survive a power failure. After an error the Set is unusable: close it
// and open it again.
func (s *Set) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	return s.sync()
}

// sync requires that s.mu is held, and unlocks it during the disk operation.
func (s *Set) sync() error {
	size, file := s.log.end, s.log.file
	if size == s.log.synced {
		return nil
	}
	if err := s.syncFile(file); err != nil {
		return err
	}
	if s.log.file == file && size > s.log.synced {
		s.log.markSynced(size)
	}
	return nil
}

// settle syncs what the next change of the manifest needs, so that it has little to do under s.mu:
// a full segment of the log, or the new index of a complete sweep, and the log. It requires that
// s.mu is held, and unlocks it during the disk operations.
func (s *Set) settle() error {
	if s.log.end >= s.segmentSize {
		if err := s.sync(); err != nil {
			return err
		}
	}
	w := s.sweep
	switch {
	case w == nil || !w.done || w.synced:
		return s.broken()
	case w.syncing == nil:
		w.syncing = make(chan struct{})
		err := s.syncFile(w.file)
		close(w.syncing)
		if err != nil {
			return err
		}
		w.synced = true
		if err := s.sync(); err != nil {
			return err
		}
	case s.fresh.full(): // nothing can be added before
		s.mu.Unlock()
		<-w.syncing
		s.mu.Lock()
	}
	return s.broken() // the Set may have been closed while s.mu was unlocked
}

// syncFile requires that s.mu is held, and unlocks it during the disk operation.
func (s *Set) syncFile(f vfs.File) error {
	s.files.RLock()
	s.mu.Unlock()
	err := f.Sync()
	s.files.RUnlock()
	s.mu.Lock()
	if err == nil {
		return nil
	}
	s.failed = fmt.Errorf("sync: %w", err)
	return fmt.Errorf("%w: %w", ErrFailed, s.failed)
}

// Stats returns the current counters.
func (s *Set) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.URLs = uint64(s.index.count) + uint64(s.fresh.n+s.frozen.n)
	stats.Trimmed = s.trimmed
	stats.Deferred = s.deferred.waiting()
	stats.DiskSize = s.log.end
	if s.index.file != nil {
		stats.DiskSize += s.index.fileSize()
	}
	for _, segment := range s.older {
		stats.DiskSize += segment.size
	}
	return stats
}

// Close merges, syncs and closes the files. The Set cannot be used afterwards. An error leaves the
// files as after a crash, except for a [CorruptError] of deferred URLs, which means what it means for [Set.Merge],
// but that Close does not wait for what the disk cannot read.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return ErrClosed
	}
	err := s.refusal()
	s.closing = true
	if err == nil {
		err = s.mergeAll(s.broken)
	}
	s.closed = true // calls that get s.mu while it is unlocked must fail
	if err == nil || errors.Is(err, ErrCorrupt) {
		err = errors.Join(err, s.sync())
	}
	return errors.Join(err, s.closeFiles())
}

// closeFiles also removes the files that the next Open does not need, and unlocks the directory.
func (s *Set) closeFiles() (err error) {
	s.files.Lock()
	defer s.files.Unlock()
	if s.sweep != nil {
		err = s.sweep.drop(s.fs)
	}
	for _, f := range []vfs.File{s.index.file, s.log.file} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return errors.Join(err, s.deferred.pile.remove(), s.deferred.spare.remove(), s.lock.Close())
}
