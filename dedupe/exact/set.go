package exact

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// What the methods of a Set refuse.
var (
	ErrClosed   = errors.New("exact: set is closed")
	ErrTooLarge = errors.New("exact: URL and data are larger than MaxEntry")
	ErrTrimmed  = errors.New("exact: entries were trimmed")
	ErrOptions  = errors.New("exact: fingerprints have another width")
	ErrLocked   = errors.New("exact: the directory is open in another Set or process")
)

// MaxEntry bounds the bytes of an entry: its URL, its data, and three for the length of the URL.
const MaxEntry = 1 << 16

// maxPile bounds the bytes of what waits, as a multiple of Memory. It allows for URLs of 350 bytes,
// and less can then wait if they are longer.
const maxPile = 8

// DefaultMemory is what a zero Memory stands for, and MinMemory what less is raised to.
const (
	DefaultMemory = 64 << 20
	MinMemory     = 2 << 20
)

// Options are what a [Set] may use. The zero Options is fine for tens of millions of URLs.
type Options struct {
	// Memory bounds the memory in bytes: a quarter is for the Bloom filter, a sixteenth for the
	// list of the latest URLs, another one for URLs that wait, and the rest for the fingerprints
	// of those. 0 means DefaultMemory. The time for a URL grows with the ratio of what is on disk
	// to it; a twentieth of the URLs' bytes is fine. The buffers of a merge come on top, 0.3 MB
	// for each run, and 0.1 % of the bytes on disk. URLs that wait and find no room in memory go
	// to a file, of up to eight times Memory.
	Memory int64

	// Wide makes fingerprints of 128 bits. false means 64 bits. It counts when a Set is created,
	// and has to be the same later.
	Wide bool

	// NoSync leaves it to the operating system when to write. A crash of the machine may then
	// cost the Set, which is found when it is opened; a crash of the process costs nothing. false
	// means that a merge waits for the disk.
	NoSync bool
}

// A Set remembers URLs on disk. Its methods are safe for concurrent use.
type Set struct {
	disk    disk
	options Options

	mu      sync.Mutex
	disked  *manifest
	runs    []*run // the longest first, as in disked
	key     siphash.Key
	waiting []sighting // the capacity is fixed
	pile    pile       // their URLs
	recent  recent     // waiting, or on disk
	filter  filter     // of all on disk
	file    uint64     // number of the latest file
	marks   marks      // in the last segment
	broken  bool       // the last merge failed
	closed  bool
	stats   Stats
	lock    io.Closer // nil if the disk is not a directory

	segmentSize int64 // from which the next segment begins
}

// Stats counts what a [Set] did since it was opened.
type Stats struct {
	URLs     uint64 // known, on disk; also since before it was opened
	Trimmed  uint64 // number of the first entry that is not trimmed
	Waiting  int    // sightings that the next merge decides about
	Added    int64  // calls of Add
	Recent   int64  // of Added, those that the list of the latest caught
	New      int64  // URLs that the Bloom filter alone knew to be new
	Merges   int64
	Runs     int
	Read     int64 // bytes from disk by merges
	Written  int64 // bytes to disk by merges, and of what waits
	DiskSize int64 // bytes of fingerprints and of entries that are not trimmed
}

// Open opens the Set in a directory, which it makes if there is none. It reads all fingerprints,
// which takes about a second for a gigabyte, and refuses what is damaged with a [CorruptError]. The
// directory is locked until Close: a second Open of it is [ErrLocked].
func Open(dir string, o Options) (*Set, error) {
	if err := vfs.MakeDir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("exact: make directory: %w", err)
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	o.Memory = max(o.Memory, MinMemory)
	lock, err := vfs.OS(dir).Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("exact: lock directory: %w", err)
	}
	s, err := open(directory(dir), o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

// open is Open for any disk, and for any memory above 0.
func open(d disk, o Options) (*Set, error) {
	s := &Set{
		disk: d, options: o, segmentSize: maxSegment,
		waiting: make([]sighting, 0, max(o.Memory*5/8/sightingBytes, 1)),
		recent:  newRecent(o.Memory / 16),
		filter:  newFilter(o.Memory / 4),
	}
	latest := make([]byte, 0, max(o.Memory/16, maxItem))
	s.pile = pile{disk: d, latest: latest, written: &s.stats.Written}
	if err := s.load(); err != nil {
		_ = s.closeRuns() // the first error says more
		return nil, err
	}
	return s, nil
}

func (o Options) width() int {
	if o.Wide {
		return 16
	}
	return 8
}

// load brings s to what is on disk, and removes what does not count.
func (s *Set) load() error {
	names, err := s.disk.list()
	if err != nil {
		return fmt.Errorf("exact: list directory: %w", err)
	}
	if s.disked, err = readManifest(s.disk, names); err != nil {
		return err
	}
	if s.disked == nil {
		return s.create(names)
	}
	if s.disked.width != s.options.width() {
		return ErrOptions
	}
	s.key = s.disked.key
	if !s.options.NoSync {
		if err := s.settle(); err != nil {
			return err
		}
	}
	count := s.disked.names()
	for _, name := range names {
		if isOurs(name) && !count[name] {
			if err := s.disk.remove(name); err != nil {
				return fmt.Errorf("exact: remove leftover: %w", err)
			}
		}
	}
	return s.loadFiles()
}

// create makes an empty Set. Files without a manifest are the rest of something that was lost.
func (s *Set) create(names []string) error {
	for _, name := range names {
		if isOurs(name) && name != manifestTemp && name != pileName {
			return &CorruptError{name, 0, "there is no MANIFEST beside it"}
		}
	}
	s.key = siphash.NewKey()
	s.disked = &manifest{key: s.key, width: s.options.width()}
	return s.commit(s.disked)
}

// settle makes what was found last. A process that was killed, or that did not sync, may have left
// the disk behind. A merge that has nothing to write would then promise what is not there.
func (s *Set) settle() error {
	for _, name := range slices.Sorted(maps.Keys(s.disked.names())) {
		f, err := s.disk.open(name)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return fmt.Errorf("exact: sync %s: %w", name, err)
		}
	}
	if err := s.disk.sync(); err != nil {
		return fmt.Errorf("exact: sync directory: %w", err)
	}
	return nil
}

// loadFiles opens the runs and checks them, and checks of the segments that they are long enough:
// their entries are checked by those who walk through them.
func (s *Set) loadFiles() error {
	for _, size := range s.disked.runs {
		r, err := openRun(s.disk, size.number, s.disked.width, func(f fingerprint) {
			s.filter.addNew(f)
		})
		if err != nil {
			return err
		}
		s.runs = append(s.runs, r)
		if r.count != size.count {
			return &CorruptError{r.name(), 0, "another number of fingerprints than in the MANIFEST"}
		}
		s.file = max(s.file, size.number)
	}
	for _, segment := range s.disked.segments {
		r, err := openSegment(s.disk, segment)
		if err != nil {
			return err
		}
		size, err := r.file.size()
		if err == nil && size < segment.size {
			err = &CorruptError{segment.name(), size, "the file ends too early"}
		}
		if closed := r.file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
		s.file = max(s.file, segment.number)
	}
	return nil
}

// Add takes notice that url was met. If the Set does not know it at the next merge, it becomes an
// entry with data, of which Add makes a copy. When the memory for sightings is full, Add merges. It
// may then fail for reasons of the disk, and has not taken notice of the URL.
func (s *Set) Add(url string, data []byte) error {
	if len(url)+len(data) > MaxEntry-maxUvarint {
		return ErrTooLarge
	}
	print := s.fingerprint(url) // takes the longest, and needs no lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.recent.meet(print) {
		s.stats.Added++
		s.stats.Recent++
		return nil
	}
	if err := s.await(print, url, data); err != nil {
		s.recent.forget(print) // or the caller's next try would pass for a repetition
		return err
	}
	s.stats.Added++
	return nil
}

// await adds a sighting to those that wait, after a merge if there is no room for it.
func (s *Set) await(print fingerprint, url string, data []byte) error {
	full := len(s.waiting) == cap(s.waiting)
	if full || s.pile.size()+itemSize(url, data) > maxPile*s.options.Memory {
		if err := s.merge(); err != nil {
			return err
		}
	}
	place, err := s.pile.add(url, data)
	if err != nil {
		return err
	}
	s.waiting = append(s.waiting, newSighting(print, place))
	return nil
}

// fingerprint never returns the zero fingerprint, which stands for none.
func (s *Set) fingerprint(url string) (f fingerprint) {
	if s.options.Wide {
		f[0], f[1] = s.key.Sum128(url)
	} else {
		f[0] = s.key.Sum64(url)
	}
	if f == (fingerprint{}) {
		f[0] = 1
	}
	return f
}

// Merge decides about all URLs that were added. After an error it is open whether it did, but
// nothing is lost as long as the process lives: the next Merge decides again.
func (s *Set) Merge() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.merge()
}

// Entries returns an iterator over the entries with a number of from and above, in order. It shows
// the merges that were done when it began. An error is yielded once, with a zero Entry, and ends
// the walk; it is [ErrTrimmed] if from was trimmed, or what comes next while the walk went on. Each
// Entry is the caller's to keep. To ask for what is new after each merge takes no walk through what
// is old.
func (s *Set) Entries(from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s.mu.Lock()
		disked, closed := s.disked, s.closed // no manifest is changed once it is in use
		var start mark
		if n := len(disked.segments); n > 0 {
			start = s.marks.before(disked.segments[n-1], from)
		}
		s.mu.Unlock()
		switch {
		case closed:
			yield(Entry{}, ErrClosed)
			return
		case from < disked.trimmed:
			yield(Entry{}, ErrTrimmed)
			return
		}
		for i, segment := range disked.segments {
			first := mark{segment.first, segmentHeader}
			switch {
			case i+1 == len(disked.segments):
				first = start
			case disked.segments[i+1].first <= from:
				continue
			}
			r, err := s.openForWalk(segment)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !walk(r, first, from, yield) {
				return
			}
		}
	}
}

// openForWalk returns ErrTrimmed if the segment cannot be opened because it is gone by now.
func (s *Set) openForWalk(wanted segment) (*segmentReader, error) {
	r, err := openSegment(s.disk, wanted)
	if err == nil {
		return r, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.disked.names()[wanted.name()] {
		return nil, ErrTrimmed
	}
	return nil, err
}

// walk yields the entries of one segment, from a number and not before a mark, and reports whether
// to go on. It closes the reader.
func walk(r *segmentReader, start mark, from uint64, yield func(Entry, error) bool) bool {
	defer r.file.Close()
	r.skip(start)
	for r.more() {
		entry, err := r.next(from)
		if err != nil {
			yield(Entry{}, err)
			return false
		}
		if entry.Seq >= from && !yield(entry, nil) {
			return false
		}
	}
	return true
}

// Trim says that entries below the number are not needed any more, which are then no longer shown.
// Their room on disk is given back as whole files. The URLs stay known.
func (s *Set) Trim(below uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	next := s.disked.clone()
	below = min(below, next.next)
	if below <= next.trimmed {
		return nil
	}
	next.trimmed = below
	for len(next.segments) > 1 && next.segments[1].first <= below {
		next.segments = next.segments[1:]
	}
	if below == next.next {
		next.segments = nil
	}
	return s.commit(next)
}

// Stats returns what the Set did so far.
func (s *Set) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Waiting = len(s.waiting)
	stats.Runs = len(s.runs)
	stats.Trimmed = s.disked.trimmed
	for _, r := range s.runs {
		stats.URLs += uint64(r.count)
		stats.DiskSize += r.fileSize()
	}
	for _, segment := range s.disked.segments {
		stats.DiskSize += segment.size
	}
	return stats
}

// Close merges and closes the files. The Set cannot be used afterwards, even if there is an error;
// then it is as after a crash.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	err := s.merge()
	s.closed = true
	err = cmp.Or(err, s.closeRuns(), s.pile.remove())
	if s.lock != nil {
		err = cmp.Or(err, s.lock.Close())
	}
	return err
}

func (s *Set) closeRuns() (err error) {
	for _, r := range s.runs {
		err = errors.Join(err, r.file.Close())
	}
	return err
}
