// Package idset is satstore's index of ids: it maps the fingerprint of each id to a number.
//
// It is a log-structured merge tree. What was put since the last checkpoint is in memory, the
// rest in sorted runs, the newest of which counts. A run is a list of segments, files that never
// change. [Set.Step] merges runs of similar size, one segment at a time, so that there are about
// as many runs as the logarithm of the number of ids. A B-tree would read and write a leaf for
// each new id; here a new id costs no read, as each segment has a filter in memory.
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

// A Key stands for an id. SHA-256 needs no secret, so nobody can make ids that collide: 2^64 of
// them would have to be tried.
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

// deleted marks a key that is no longer in the set, for runs that are older.
const deleted = MaxValue

// A Set maps keys to values. Its methods are safe for concurrent use. Close comes after all
// others.
//
// Between a Find and the Put that depends on it, the caller has to keep other writers out.
type Set struct {
	fs vfs.FS

	// mem is never held during a read of the disk, so Put does not wait for one.
	mem    sync.Mutex
	active map[Key]uint64
	frozen []map[Key]uint64 // what the next Flush writes, the newest last

	// mu is held for reading while a look-up reads files, and for writing to exchange runs.
	mu       sync.RWMutex
	runs     []*run   // the oldest first
	obsolete []string // files that only a checkpoint needs
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

// Find returns the values of keys, None for those that are not in the set. It reads each block
// that has some of them once, several at the same time.
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

// A query is a Find that is under way.
type query struct {
	keys   []Key
	values []uint64
	open   []int // indexes of keys that were not found yet
}

// recall answers what memory knows.
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

// Freeze separates what was put before from what is put later: the next Flush writes what came
// before.
func (x *Set) Freeze() {
	x.mem.Lock()
	defer x.mem.Unlock()
	if len(x.active) > 0 {
		x.frozen = append(x.frozen, x.active)
		x.active = map[Key]uint64{}
	}
}

// Flush writes what is frozen to a run and syncs it. After an error all of it is still frozen.
func (x *Set) Flush() error {
	x.mem.Lock()
	frozen := slices.Clone(x.frozen) // nobody changes those maps any more
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
	// Look-ups find it in memory until here, and in the run from here on.
	x.mem.Lock()
	x.frozen = x.frozen[len(frozen):]
	x.mem.Unlock()
	return nil
}

// sorted visits the entries of maps in the order of keys, of those with one key the one in the last
// map. It sorts a part at a time and yields in between: callers of the store share few processors
// with this work.
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
		runtime.Gosched()
	}
}

func (x *Set) nextFile() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.file++ // also if the file cannot be made, so that no name is used twice
	return x.file
}

// Size returns the bytes of all files that are in use.
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

// All visits every key that is in the set, in order.
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

// Close closes all files. It waits for look-ups; Flush and Step must have returned.
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
