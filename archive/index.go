package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Limits of uncommitted entries. They bound the memory, and the bytes to read again after a crash.
const (
	maxPending      = 1 << 17  // entries
	maxPendingBytes = 32 << 20 // of entries in memory
	maxUnindexed    = 1 << 29  // bytes of records in WARC files
)

// index finds versions by URL and time. Entries are collected in memory, and committed in batches
// by a goroutine that ends when it is idle. Entries lost in a crash are indexed again from the WARC
// files when the archive is opened. Its methods are safe for concurrent use.
type index struct {
	tree     atomic.Pointer[lsm.Tree]
	limit    int  // of uncommitted entries
	readOnly bool // nothing is ever committed

	writing sync.Mutex // held during a commit or a merge
	waiters atomic.Int32

	mu        sync.RWMutex // guards what follows, and keeps entries and ends together
	force     func() error // syncs the WARC files as far as they are indexed; nil if not needed
	names     []string     // of WARC files, by number
	files     map[string]*indexed
	dirty     bool  // there are uncommitted changes
	unindexed int64 // bytes of records since the last commit
	bodies    bool  // bodies are indexed by their digests, see share
	running   bool  // the goroutine runs
	failed    error // of its last step, for Stats
	unsaid    error // of a merge, until it is reported
	unwritten error // of a commit, until that is reported or made up for by a later one
	damage    error // because of which the index was made anew
	closed    bool
	ended     sync.WaitGroup
	damaged   atomic.Bool // some of it cannot be read: the next Open makes it anew
	lacking   atomic.Bool // entries are missing
}

// indexed is a WARC file that the index knows.
type indexed struct {
	number uint32
	end    int64 // of the indexed part
	known  int64 // the largest end ever: a file that is shorter has lost something
}

// Ways to open an index.
const (
	writeIndex = iota // one that may exist
	newIndex          // a new one, which replaces the old one with its first commit
	readIndex         // one that another archive may write; new entries stay in memory
)

// openIndex reads an index, or makes one.
func openIndex(files vfs.FS, how int) (*index, error) {
	anew, readOnly := how == newIndex, how == readIndex
	tree, meta, err := lsm.Open(files, lsm.Options{New: anew, ReadOnly: readOnly, Prefix: keyPrefix})
	if err != nil {
		return nil, indexError(err)
	}
	// A new index replaces the old one even if it stays empty.
	x := &index{limit: maxPending, files: map[string]*indexed{}, dirty: anew, readOnly: readOnly}
	x.tree.Store(tree)
	if err := x.load(meta); err != nil {
		tree.Close()
		return nil, err
	}
	if anew {
		x.remember(files)
	}
	return x, nil
}

// keyPrefix is the length of the part of a key that lookups use: the URL and its NUL, or the digest
// of a body.
func keyPrefix(key []byte) int {
	if len(key) < tailSize || key[0] == bodyMark {
		return len(key)
	}
	return len(key) - tailSize
}

// lsm returns the current tree.
func (x *index) lsm() *lsm.Tree { return x.tree.Load() }

// around looks a key up. The tree may be replaced, and closed, before the look-up begins.
func (x *index) around(n *lsm.Neighbors, key []byte, prefix int) error {
	if err := x.complete(); err != nil {
		return err
	}
	for {
		tree := x.lsm()
		if err := tree.Around(n, key, prefix); !errors.Is(err, lsm.ErrClosed) || tree == x.lsm() {
			return x.notice(err)
		}
	}
}

// pairs returns the pairs in a range of keys, as lsm.Tree.Scan does.
func (x *index) pairs(low, high []byte) iter.Seq2[lsm.Pair, error] {
	return func(yield func(lsm.Pair, error) bool) {
		for again := true; again; {
			tree := x.lsm()
			again = false
			for p, err := range tree.Scan(low, high) {
				if again = errors.Is(err, lsm.ErrClosed) && tree != x.lsm(); again {
					break // it was replaced, and closed, before the first step
				}
				if !yield(p, err) {
					return
				}
			}
		}
	}
}

// complete returns errLacking if entries are missing.
func (x *index) complete() error {
	if x.lacking.Load() {
		return errLacking
	}
	return nil
}

// indexError marks damage.
func indexError(err error) error {
	switch {
	case errors.Is(err, lsm.ErrClosed):
		return ErrClosed
	case errors.Is(err, lsm.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return err
}

// notice is indexError for an open index. Damage is noted on disk, so that the next Open makes the index anew.
func (x *index) notice(err error) error {
	err = indexError(err)
	if !errors.Is(err, ErrIndex) {
		return err
	}
	if x.damaged.CompareAndSwap(false, true) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.damage, x.dirty = err, true
		x.failed, x.unsaid = err, err // Stats, and the next Sync or Close
	}
	return fmt.Errorf("%w: open the archive with Options.Reindex", err)
}

// report returns the error of the last background step once.
func (x *index) report() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := errors.Join(x.unsaid, x.unwritten)
	x.unsaid, x.unwritten = nil, nil
	return err
}

// Flags of the list of files, and of one. They are on disk: do not change them.
const (
	flagBodies  = 1
	flagDamaged = 2 // some of the index cannot be read
	flagLonger  = 2 // it was known to be longer
)

// load parses the list of files.
func (x *index) load(meta []byte) error {
	if len(meta) == 0 {
		return nil
	}
	c := cutter{meta, true}
	flags := c.next()
	if x.bodies = flags&flagBodies != 0; flags&flagDamaged != 0 && !x.readOnly {
		return fmt.Errorf("%w: it was found damaged", ErrIndex)
	}
	for c.ok && len(c.rest) > 0 {
		flags, end := c.next(), int64(c.uvarint())
		known := end
		if flags&flagLonger != 0 {
			known += int64(c.uvarint())
		}
		name := string(c.take(c.uvarint()))
		if c.ok && name == "" { // it was forgotten, and no entry has its number
			x.names = append(x.names, name)
			continue
		}
		if !c.ok || x.files[name] != nil || end < 0 || known < end {
			return fmt.Errorf("%w: broken list of files", ErrIndex)
		}
		x.files[name] = &indexed{uint32(len(x.names)), end, known}
		x.names = append(x.names, name)
	}
	return nil
}

// remember gives a new index the files that the one on disk knew, and their lengths: else a file that
// has lost its end, or all, would seem sound.
func (x *index) remember(files vfs.FS) {
	before := &index{files: map[string]*indexed{}, readOnly: true}
	if before.load(lsm.Meta(files)) != nil {
		return
	}
	for _, name := range before.names {
		if name != "" {
			x.fileLocked(name).known = before.files[name].known
		}
	}
}

// forget takes the files for what they are now, and forgets the names of those that are not there.
func (x *index) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, f := range x.files {
		x.dirty = x.dirty || f.known != f.end
		if f.known = f.end; f.end == 0 {
			delete(x.files, name)
			x.names[f.number], x.dirty = "", true
		}
	}
}

// list is the inverse of load. It requires that x.mu is held.
func (x *index) list() []byte {
	meta := []byte{0}
	if x.bodies {
		meta[0] |= flagBodies
	}
	if x.damaged.Load() {
		meta[0] |= flagDamaged
	}
	for _, name := range x.names {
		f := x.files[name]
		if f == nil {
			f = &indexed{}
		}
		if f.known > f.end {
			meta = binary.AppendUvarint(append(meta, flagLonger), uint64(f.end))
			meta = binary.AppendUvarint(meta, uint64(f.known-f.end))
		} else {
			meta = binary.AppendUvarint(append(meta, 0), uint64(f.end))
		}
		meta = append(binary.AppendUvarint(meta, uint64(len(name))), name...)
	}
	return meta
}

// file returns the number and the indexed length of a WARC file. A new file gets a number.
func (x *index) file(name string) (number uint32, end int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.fileLocked(name)
	return f.number, f.end
}

// fileLocked requires that x.mu is held.
func (x *index) fileLocked(name string) *indexed {
	f := x.files[name]
	if f == nil {
		f = &indexed{number: uint32(len(x.names))}
		x.files[name] = f
		x.names = append(x.names, name)
		x.dirty = true
	}
	return f
}

// state returns what is known of a WARC file, if it is known.
func (x *index) state(name string) (indexed, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if f := x.files[name]; f != nil {
		return *f, true
	}
	return indexed{}, false
}

// name returns the name of a WARC file by its number.
func (x *index) name(number uint32) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if uint64(number) >= uint64(len(x.names)) { // without overflow of a 32-bit int
		return ""
	}
	return x.names[number]
}

// indexedFiles returns a copy of the state of each file.
func (x *index) indexedFiles() map[string]indexed {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := map[string]indexed{}
	for name, f := range x.files {
		all[name] = *f
	}
	return all
}

// add records that the file is indexed up to end, and adds the entry of a URL if there is one. body
// is the digest under which other URLs may find the content, or "". It is ignored unless bodies are
// indexed.
func (x *index) add(file, url string, e *entry, body digest, end int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.fileLocked(file)
	x.dirty = x.dirty || f.end != end || e != nil
	f.end, f.known = end, max(f.known, end)
	if e != nil {
		e.file = f.number
		x.lsm().Put(appendKey(make([]byte, 0, len(url)+1+tailSize), url, e),
			e.appendValue(make([]byte, 0, usualValue)))
		if body != "" && x.bodies {
			x.lsm().Put(bodyKey(body), e.address().append(nil))
		}
		x.unindexed += e.length
	}
	if !x.readOnly && x.fullLocked() {
		x.startLocked()
	}
}

// replace replaces the value of an existing entry.
func (x *index) replace(url string, e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lsm().Put(appendKey(nil, url, e), e.appendValue(nil))
	x.dirty = true
}

// usualValue is the maximum length of nearly all values.
const usualValue = 64

// fullLocked reports whether there is enough to commit. It requires that x.mu is held.
func (x *index) fullLocked() bool {
	count, bytes := x.lsm().Waiting()
	return count >= x.limit || bytes >= maxPendingBytes || x.unindexed >= maxUnindexed
}

// admit bounds memory: it commits if entries are added faster than the goroutine commits them. It
// returns the error of that commit.
func (x *index) admit() error {
	count, bytes := x.lsm().Waiting()
	if x.readOnly || count < 2*x.limit && bytes < 2*maxPendingBytes {
		return nil
	}
	return x.commit()
}

// startLocked starts the goroutine that commits and merges, unless it runs. It requires that x.mu
// is held.
func (x *index) startLocked() {
	if x.running || x.closed {
		return
	}
	x.running = true
	full := x.fullLocked()
	x.ended.Go(func() {
		var err error
		if full {
			err = x.write(true)
		}
		if err == nil && !x.damaged.Load() {
			err = x.merge()
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.running = false
		untold := err == nil && x.damaged.Load() // damage that a look-up has found
		if !errors.Is(err, ErrClosed) && !errors.Is(err, errUnwritten) && !untold {
			x.failed, x.unsaid = err, err
		}
	})
}
