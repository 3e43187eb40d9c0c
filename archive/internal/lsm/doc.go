// Package lsm keeps sorted keys and values in immutable files that are merged in the background: a
// log-structured merge tree (O'Neil et al., 1996) without a log of its own. Its user must be able
// to put again what was not committed; an archive reads it from the ends of its WARC files.
//
//	t, meta, err := lsm.Open(fs, lsm.Options{Prefix: prefix})
//	t.Put(key, value)  // in memory
//	t.Freeze(meta)     // what was put so far belongs to the next commit
//	err = t.Commit()   // writes it; readers and writers go on meanwhile
//
// # Shape
//
// Keys wait in a memtable. A commit writes the memtable as a run, a sorted file that never changes,
// and then the manifest, which lists the runs. Runs are merged so that each is at least as long as
// all newer ones together: there are logarithmically many, and an entry is rewritten as often. A
// lookup asks the Bloom filter of each run, and reads a block of 4 KiB of those that may have the
// key, or two where a run is very long.
//
// # Durability
//
// A run is synced before the manifest names it, and the manifest takes the place of the one before
// by a rename. So a power failure leaves the state of one commit, entries and meta together.
//
// # Reading the source
//
// tree.go is the heart: what is where, and the commit. run.go reads a run and writer.go writes one;
// block.go is their unit. memtable.go holds what waits. view.go answers lookups and scans.
package lsm

import (
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by every [CorruptError].
var ErrCorrupt = errors.New("lsm: corrupt file")

// ErrClosed is returned by a [Tree] that was closed.
var ErrClosed = errors.New("lsm: closed")

// CorruptError is the position of damage in a file.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("lsm: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
