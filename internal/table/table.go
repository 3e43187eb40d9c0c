// Package table is the engine of everything that is kept sorted on disk: a log-structured merge
// tree (O'Neil et al., "The log-structured merge-tree", 1996) without memory tables, log and
// manifest. These differ between its users, who own them.
//
//	t, err := table.Open(fs, options, state)
//	err = t.Write(entries)      // a run of sorted entries, newer than all others
//	more, err := t.Step(stop)   // a small part of a merge
//	save(t.State())             // durably, in the owner's manifest
//	t.Saved(state)              // removes files that no state needs any more
//
// # Shape
//
// A run is a sorted list of entries; of entries with the same key, the one of the newest run
// counts. A run is a list of segments, which are immutable files. [Table.Step] merges runs until
// each is at least as long as all newer ones together. So the number of runs is logarithmic, and so
// is the number of times that an entry is rewritten. A merge publishes each segment when it is
// complete, and drops those of its inputs that it has passed; so it needs little space, and goes on
// where it was after a restart. Meanwhile newer runs are merged among themselves.
//
// A look-up asks the filter of each run, and reads one block of each run that may have the key. It
// never waits for a merge: readers hold references to the files that they use.
//
// # Durability
//
// A segment is synced before a state names it. The owner makes the state durable in a file that he
// replaces with the directory synced before and after. No file number is used twice. Files that no
// state names are incomplete, and [Table.Sweep] removes them.
//
// # Why not another engine
//
// The sstables of pebble take 26 modules and twice the time here, and bbolt takes six times the
// bytes. FORMAT.md describes the files.
//
// Read table.go first, then find.go and merge.go, then segment.go and writer.go with block.go and
// filter.go.
package table

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// ErrClosed is returned by a closed [Table].
var ErrClosed = errors.New("table: closed")

// Options describe a [Table]. Those up to Prefix are part of the format.
type Options struct {
	// Name is the beginning of all file names. "" means that these are numbers.
	Name string

	// Key and Value are the sizes of all keys and values. Key 0 means that they vary.
	Key, Value int

	// Block is the size of a block in bytes, of which a look-up reads one. 0 means one entry.
	Block int

	// FilterBits is the number of bits of a filter for each prefix, and FullBits the number in full
	// segments. Most runs are small, and most keys are in the large ones, where memory matters (as
	// in Monkey: Dayan, Athanassoulis and Idreos, 2017). 0 means filters that rule nothing out.
	FilterBits, FullBits int

	// Prefix returns the length of the part of a key that look-ups know. nil means the whole key.
	Prefix func(key []byte) int

	// Dead reports whether a value only hides older entries of its key. A merge drops such entries
	// if there are no older ones. nil means that there are none.
	Dead func(value []byte) bool

	// Segment is the number of entries at which a merge begins the next file, and Steps the number
	// that one step merges. 0 means that nothing can be merged.
	Segment, Steps int64

	// Memory bounds the bytes of indexes and filters in memory; 0 means no bound. Look-ups in files
	// beyond it read the index, and lack a filter.
	Memory int64
}

// A Table is a sorted map from keys to values on disk. Its methods are safe for concurrent use.
// Only one goroutine at a time may Write, and one may Step.
type Table struct {
	Options
	fs   vfs.FS
	used atomic.Int64 // of Memory

	mu       sync.Mutex
	view     *view
	obsolete []*segment // no longer in the view; states name them until they are saved
	last     uint64     // number of the latest file
	closed   bool
}

// A run is an immutable list of segments that do not overlap.
type run struct {
	segments []*segment
	low      []byte // entries below it have moved to the output of a merge
	job      *job   // if this is the output of a merge
}

func (r *run) count() (n int64) {
	for _, s := range r.segments {
		n += s.count
	}
	return n
}

// A view is an immutable list of runs, the oldest first. It keeps their files open.
type view struct {
	runs []*run
	refs atomic.Int64
}

func newView(runs []*run) *view {
	v := &view{runs: runs}
	v.refs.Store(1)
	for _, r := range runs {
		for _, s := range r.segments {
			s.refs.Add(1)
		}
	}
	return v
}

func (v *view) release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	for _, r := range v.runs {
		for _, s := range r.segments {
			s.release()
		}
	}
}

// acquire returns the current view, which the caller must release.
func (t *Table) acquire() (*view, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	t.view.refs.Add(1)
	return t.view, nil
}

// replace makes some runs the current ones. It requires that t.mu is held.
func (t *Table) replace(runs []*run) {
	old := t.view
	t.view = newView(runs)
	old.release()
}

// Open opens the files of a state. The zero State is an empty table.
func Open(fs vfs.FS, o Options, st State) (*Table, error) {
	t := &Table{Options: o, fs: fs, last: st.Last, view: newView(nil)}
	names, err := fs.List()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	for _, name := range names {
		if number, ours := t.fileNumber(name); ours {
			t.last = max(t.last, number)
		}
	}
	runs, err := t.open(st)
	t.view = newView(runs) // also of those that could be opened, to close them
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Table) open(st State) (runs []*run, err error) {
	for i, rs := range st.Runs {
		r := &run{}
		if rs.Inputs > 0 {
			r.job = &job{inputs: rs.Inputs, low: rs.Low}
			for _, input := range runs[i-rs.Inputs:] {
				input.low = rs.Low
			}
		}
		runs = append(runs, r)
	}
	// The newest first: their filters save the most reads for their size.
	for i, r := range slices.Backward(runs) {
		for _, number := range st.Runs[i].Files {
			s, err := t.openSegment(number)
			if err != nil {
				return runs, err
			}
			r.segments = append(r.segments, s)
			if n := len(r.segments); n > 1 && !r.segments[n-2].before(s) {
				return runs, s.corrupt(0, "segments out of order")
			}
		}
	}
	return runs, nil
}

// fileName returns the name of the file with a number.
func (t *Table) fileName(number uint64) string { return FileName(t.Name, number) }

// FileName returns the name of a file of a table.
func FileName(name string, number uint64) string { return fmt.Sprintf("%s%08d", name, number) }

// MaxLeft is how far the numbers of files that a crash has left behind are beyond State.Last, at most. A file
// with a greater one is the caller's, named after the date.
const MaxLeft = 1 << 20

// fileNumber returns the number in the name of a file, if it is one of the table.
func (t *Table) fileNumber(file string) (number uint64, ours bool) {
	digits, found := strings.CutPrefix(file, t.Name)
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, found && err == nil && file == t.fileName(number) && number <= t.last+MaxLeft
}

// Write adds a run with the entries of a source. It syncs the file.
func (t *Table) Write(from Source) error {
	w, err := t.create(nil)
	if err != nil {
		return err
	}
	for {
		key, value, err := from.Next()
		if err != nil {
			w.discard()
			return err
		}
		if key == nil {
			break
		}
		w.add(key, value)
	}
	if w.count == 0 {
		w.discard()
		return nil
	}
	s, err := w.finish()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replace(append(slices.Clip(t.view.runs), &run{segments: []*segment{s}}))
	return nil
}

// Saved says that a state is durable. It removes the files that only older states name. A file that
// cannot be removed does no harm; the next Sweep removes it.
func (t *Table) Saved(st State) {
	named := map[uint64]bool{}
	for _, r := range st.Runs {
		for _, number := range r.Files {
			named[number] = true
		}
	}
	t.mu.Lock()
	old := t.obsolete
	t.obsolete = nil
	for _, s := range old {
		if named[s.number] { // it became obsolete since
			t.obsolete = append(t.obsolete, s)
		}
	}
	t.mu.Unlock()
	for _, s := range old {
		if !named[s.number] {
			s.doomed.Store(true)
			s.release()
		}
	}
}

// Garbage returns how many files wait for a state that does not name them to be saved.
func (t *Table) Garbage() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.obsolete)
}

// Sweep removes the files that the current state does not name. It must be called before the first
// Write and the first Step, whose unfinished files it would remove. First it syncs the directory: a process
// that was killed may have left a manifest whose name is not durable, and a power failure would bring back
// the one before, and need its files.
func (t *Table) Sweep() error {
	if err := t.fs.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	names, err := t.fs.List()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	named := t.State().Names(t.Name)
	for _, name := range names {
		if _, ours := t.fileNumber(name); ours && !slices.Contains(named, name) {
			if err := t.fs.Remove(name); err != nil {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return nil
}

// Size returns the size of all files in bytes, and the number of runs and of entries.
func (t *Table) Size() (bytes int64, runs int, entries int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.view.runs {
		for _, s := range r.segments {
			bytes += s.size
		}
		entries += r.count()
	}
	return bytes, len(t.view.runs), entries
}

// Close closes the files when the last reader is done. Write and Step must have returned. It
// removes the file of an unfinished merge.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	for _, r := range t.view.runs {
		if r.job != nil {
			r.job.abort()
		}
	}
	for _, s := range t.obsolete {
		s.release()
	}
	t.view.release()
}
