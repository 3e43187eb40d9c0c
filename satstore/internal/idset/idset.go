// Package idset is the id index: it maps the fingerprint of each id to a number.
//
// It is a log-structured merge tree. Changes since the last checkpoint are in memory, the rest is
// in sorted runs; the newest entry of a key counts. A run is a list of segments, which are
// immutable files. [Set.Step] merges runs of similar size, one segment at a time, so the number of
// runs is logarithmic. A B-tree would read and write a leaf for each new id. Here each segment has
// a filter in memory, and a new id hardly ever reads anything.
//
// Read idset.go first, then run.go and segment.go for look-ups, merge.go and state.go.
package idset

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"runtime"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// A Key is the fingerprint of an id. It needs no secret: finding a collision takes 2^64 attempts.
type Key [KeySize]byte

// KeySize is the size of a Key.
const KeySize = 16

// KeyOf returns the key of an id: the first bytes of its SHA-256.
func KeyOf(id string) Key {
	sum := sha256.Sum256([]byte(id))
	return Key(sum[:KeySize])
}

func compareKeys(a, b Key) int { return bytes.Compare(a[:], b[:]) }

// None is the value of a key that is not in the set. Values are below [MaxValue].
const (
	None     = 1<<64 - 1
	MaxValue = 1 << 63
)

// deleted marks a key that is no longer in the set. It hides older entries.
const deleted = MaxValue

// A Set maps keys to values. Its methods are safe for concurrent use. Close must be the last call.
//
// The caller must exclude other writers between a Find and a Put that depends on it.
type Set struct {
	fs vfs.FS

	// mem is never held during a disk read, so Put does not wait for one.
	mem    sync.Mutex
	active map[Key]uint64
	frozen []map[Key]uint64 // to be written by the next Flush, the newest last

	// mu is read-locked while a look-up reads files, and locked to replace runs.
	mu       sync.RWMutex
	runs     []*run   // the oldest first
	obsolete []string // files that only the last checkpoint needs
	file     uint64   // number of the latest file
	closed   bool
}

// New returns an empty set that keeps its files in a directory.
func New(fs vfs.FS) *Set { return &Set{fs: fs, active: map[Key]uint64{}} }

// Put sets the value of a key.
func (x *Set) Put(key Key, value uint64) {
	x.mem.Lock()
	defer x.mem.Unlock()
	x.active[key] = value
}

// Delete removes a key.
func (x *Set) Delete(key Key) { x.Put(key, deleted) }

// Find returns the values of keys, and None for those that are not in the set. It reads each block
// once, and several blocks at the same time.
func (x *Set) Find(keys []Key) ([]uint64, error) {
	values := make([]uint64, len(keys))
	q := query{keys: keys, values: values}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return nil, disk.ErrClosed
	}
	x.recall(&q)
	slices.SortFunc(q.open, func(i, j int) int { return compareKeys(keys[i], keys[j]) })
	for _, r := range slices.Backward(x.runs) {
		if err := r.find(&q); err != nil {
			return nil, err
		}
	}
	for _, i := range q.open {
		values[i] = None
	}
	for i, value := range values {
		if value&deleted != 0 {
			values[i] = None
		}
	}
	return values, nil
}

// A query is the state of a Find.
type query struct {
	keys   []Key
	values []uint64
	open   []int // indexes of keys that are not found yet
}

// recall answers a query from memory.
func (x *Set) recall(q *query) {
	x.mem.Lock()
	defer x.mem.Unlock()
	q.open = make([]int, 0, len(q.keys))
	for i, key := range q.keys {
		value, found := x.active[key]
		for at := len(x.frozen) - 1; !found && at >= 0; at-- {
			value, found = x.frozen[at][key]
		}
		if q.values[i] = value; !found {
			q.open = append(q.open, i)
		}
	}
}

// Freeze marks a moment: the next Flush writes the entries put before it.
func (x *Set) Freeze() {
	x.mem.Lock()
	defer x.mem.Unlock()
	if len(x.active) > 0 {
		x.frozen = append(x.frozen, x.active)
		x.active = map[Key]uint64{}
	}
}

// Flush writes the frozen entries to a run and syncs it. After an error they are still frozen.
func (x *Set) Flush() error {
	x.mem.Lock()
	frozen := slices.Clone(x.frozen) // these maps no longer change
	x.mem.Unlock()
	if len(frozen) == 0 {
		return nil
	}
	count := 0
	for _, some := range frozen {
		count += len(some)
	}
	w, err := createSegment(x.fs, x.nextFile(), int64(count))
	if err != nil {
		return err
	}
	sorted(frozen, w.add)
	s, err := w.finish()
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.runs = append(x.runs, &run{segments: []*segment{s}})
	x.mu.Unlock()
	// Until here, look-ups find the entries in memory; from here on, in the run.
	x.mem.Lock()
	x.frozen = x.frozen[len(frozen):]
	x.mem.Unlock()
	return nil
}

// sorted visits the entries of maps in the order of their keys. If several maps have a key, the
// last one counts. It sorts one part at a time and yields in between, because callers may be
// waiting for the processor.
func sorted(maps []map[Key]uint64, visit func(Key, uint64)) {
	type entry struct {
		key   Key
		value uint64
		age   int
	}
	var parts [256][]entry
	for age, m := range maps {
		n := 0
		for key, value := range m {
			parts[key[0]] = append(parts[key[0]], entry{key, value, age})
			if n++; n%perBlock == 0 {
				runtime.Gosched()
			}
		}
	}
	n := 0
	for i, part := range parts {
		slices.SortFunc(part, func(a, b entry) int {
			return cmp.Or(compareKeys(a.key, b.key), cmp.Compare(a.age, b.age))
		})
		for j, e := range part {
			if last := j+1 == len(part); last || part[j+1].key != e.key {
				visit(e.key, e.value)
			}
		}
		parts[i] = nil
		if n += len(part); n >= perBlock {
			n = 0
			runtime.Gosched()
		}
	}
}

func (x *Set) nextFile() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.file++ // even if the file cannot be created, so that no name is used twice
	return x.file
}

// Size returns the size of all files in use, in bytes.
func (x *Set) Size() (bytes int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.runs {
		for _, s := range r.segments {
			bytes += s.size
		}
	}
	return bytes
}

// All visits all keys in order.
func (x *Set) All(visit func(key Key, value uint64)) error {
	x.mem.Lock()
	recent := &memory{}
	sorted(append(slices.Clone(x.frozen), x.active), recent.add)
	x.mem.Unlock()
	x.mu.RLock()
	defer x.mu.RUnlock()
	sources := []source{recent}
	for _, r := range slices.Backward(x.runs) {
		sources = append(sources, r.from(r.low))
	}
	m, err := newMerger(sources)
	for err == nil && m.more() {
		if m.value&deleted == 0 {
			visit(m.key, m.value)
		}
		err = m.next()
	}
	return err
}

// Close closes all files. It waits for look-ups. Flush and Step must have returned.
func (x *Set) Close() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, r := range x.runs {
		for _, s := range r.segments {
			if closed := s.file.Close(); err == nil {
				err = closed
			}
		}
	}
	return err
}
