// Package lsm stores sorted keys and values in immutable files that are merged in the background: a
// log-structured merge tree (O'Neil et al., 1996) without a log. The caller must be able to repeat
// all puts since the last commit; an archive reads them from the ends of its WARC files.
//
//	t, meta, err := lsm.Open(fs, lsm.Options{Prefix: prefix})
//	t.Put(key, value)  // in memory
//	t.Freeze(meta)     // the pairs put so far belong to the next commit
//	err = t.Commit()   // writes them, and blocks neither readers nor writers
//
// # Shape
//
// New pairs are in a memtable. A commit writes the memtable as a run, a sorted and immutable file,
// and then the manifest, which lists the runs. Runs are merged so that each is at least as long as
// all newer ones together: their number is logarithmic, and so is the number of times that an entry
// is rewritten. A lookup checks the Bloom filter of each run. It reads one block of 4 KiB of each
// run that may have the key, or two if the run is very long.
//
// # Durability
//
// A run is synced before the manifest lists it, and a rename replaces the manifest. So after a
// power failure the tree has the entries and the meta of one commit.
//
// # Reading the source
//
// tree.go is the heart: the state, the manifest and commits. run.go reads a run and writer.go
// writes one; block.go is their unit. memtable.go has the uncommitted pairs. view.go answers
// lookups and scans.
package lsm

import (
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by every [CorruptError].
var ErrCorrupt = errors.New("lsm: corrupt file")

// ErrClosed is returned by a closed [Tree].
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
