// Package idset is the id index: it maps the fingerprint of each id to a number.
//
// Changes since the last checkpoint are in memory, the rest is in a [table.Table]; the newest entry
// of a key counts. A deleted key has an entry that hides older ones.
package idset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
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

// None is the value of a key that is not in the set. Values are below [MaxValue].
const (
	None     = 1<<64 - 1
	MaxValue = 1 << 63
)

// deleted marks a key that is no longer in the set.
const deleted = MaxValue

const namePrefix = "ids-"

// FileName returns the name of the file with a number.
func FileName(number uint64) string { return table.FileName(namePrefix, number) }

// Names returns the names of the files of a state.
func Names(st State) []string { return st.Names(namePrefix) }

// A State is the part of a checkpoint about a set: its files.
type State = table.State

// options are those of the table. Those up to Block are on disk. A segment has 48 MiB. Tests
// change them.
var options = table.Options{
	Name: namePrefix, Key: KeySize, Value: 8, Block: 16 << 10, FilterBits: 16, FullBits: 12,
	Segment: 2 << 20, Steps: 64 << 10,
	Dead: func(value []byte) bool { return value[7]>>7 != 0 },
}

// A Set maps keys to values. Its methods are safe for concurrent use. Close must be the last call.
//
// The caller must exclude other writers between a Find and a Put that depends on it.
type Set struct {
	table *table.Table

	mu     sync.Mutex // never held during a disk read, so Put does not wait for one
	active map[Key]uint64
	frozen []map[Key]uint64 // to be written by the next Flush, the newest last
}

// Open opens the files of a state. The zero State is an empty set. Blocks have checksums, so sectors that
// the disk cannot read are damage like any other.
func Open(fs vfs.FS, st State) (*Set, error) {
	t, err := table.Open(durable.Salvage(fs), options, st)
	if err != nil {
		return nil, fmt.Errorf("satstore: ids: %w", err)
	}
	return &Set{table: t, active: map[Key]uint64{}}, nil
}

// Put sets the value of a key.
func (x *Set) Put(key Key, value uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active[key] = value
}

// Delete removes a key.
func (x *Set) Delete(key Key) { x.Put(key, deleted) }

// Find returns the values of keys, and None for those that are not in the set. It reads each block
// once, and several blocks at the same time.
func (x *Set) Find(keys []Key) ([]uint64, error) {
	values := make([]uint64, len(keys))
	open := x.recall(keys, values)
	slices.SortFunc(open, func(i, j int) int { return bytes.Compare(keys[i][:], keys[j][:]) })
	sorted := make([][]byte, len(open))
	for n, i := range open {
		sorted[n] = keys[i][:]
	}
	err := x.table.Find(sorted, func(n int, value []byte) {
		values[open[n]] = binary.LittleEndian.Uint64(value)
	})
	if errors.Is(err, table.ErrClosed) {
		return nil, extent.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("satstore: ids: %w", err)
	}
	for i, value := range values {
		if value&deleted != 0 {
			values[i] = None
		}
	}
	return values, nil
}

// recall sets the values of the keys that are in memory, and returns the indexes of the others,
// whose values it sets to None.
func (x *Set) recall(keys []Key, values []uint64) (open []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	open = make([]int, 0, len(keys))
	for i, key := range keys {
		value, found := x.active[key]
		for at := len(x.frozen) - 1; !found && at >= 0; at-- {
			value, found = x.frozen[at][key]
		}
		if values[i] = value; !found {
			values[i] = None
			open = append(open, i)
		}
	}
	return open
}

// Freeze marks a moment: the next Flush writes the entries put before it.
func (x *Set) Freeze() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.active) > 0 {
		x.frozen = append(x.frozen, x.active)
		x.active = map[Key]uint64{}
	}
}

// Flush writes the frozen entries to a run and syncs it. After an error they are still frozen.
func (x *Set) Flush() error {
	x.mu.Lock()
	frozen := slices.Clone(x.frozen) // these maps no longer change
	x.mu.Unlock()
	if len(frozen) == 0 {
		return nil
	}
	if err := x.table.Write(newMemory(frozen)); err != nil {
		return fmt.Errorf("satstore: ids: %w", err)
	}
	// Until here, look-ups find the entries in memory; from here on, in the run.
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frozen = slices.Delete(x.frozen, 0, len(frozen))
	return nil
}

// Step does a small part of a merge if there is anything to merge, and reports whether there is
// more to do. Only one Step may run at a time. It does not block look-ups.
func (x *Set) Step() (more bool, err error) {
	if more, err = x.table.Step(); err != nil {
		err = fmt.Errorf("satstore: merge ids: %w", err)
	}
	return more, err
}

// State returns the state of the flushed entries.
func (x *Set) State() State { return x.table.State() }

// Saved removes files that are no longer needed now that st is in a durable checkpoint.
func (x *Set) Saved(st State) { x.table.Saved(st) }

// Size returns the size of all files in use, in bytes.
func (x *Set) Size() int64 {
	bytes, _, _ := x.table.Size()
	return bytes
}

// All visits all keys in order.
func (x *Set) All(visit func(key Key, value uint64)) error {
	x.mu.Lock()
	recent := newMemory(append(slices.Clone(x.frozen), x.active))
	sources, release, err := x.table.Scan(nil)
	x.mu.Unlock()
	if err != nil {
		return extent.ErrClosed
	}
	defer release()
	m, err := table.NewMerger(append([]table.Source{recent}, sources...)...)
	for ; err == nil; err = m.Next() {
		key, b := m.Entry()
		if key == nil {
			return nil
		}
		if value := binary.LittleEndian.Uint64(b); value&deleted == 0 {
			visit(Key(key), value)
		}
	}
	return fmt.Errorf("satstore: ids: %w", err)
}

// Close closes all files. Flush and Step must have returned.
func (x *Set) Close() { x.table.Close() }
