// Package lsm is the index of an archive: sorted keys and values in a [table.Table], beside a table
// in memory. It has no log. The caller must be able to repeat all puts since the last commit; an
// archive reads them from the ends of its WARC files.
//
//	t, meta, err := lsm.Open(fs, lsm.Options{Prefix: prefix})
//	t.Put(key, value)  // in memory
//	t.Freeze(meta)     // the pairs put so far belong to the next commit
//	err = t.Commit()   // writes them, and blocks neither readers nor writers
//
// # Durability
//
// A commit writes the frozen pairs as a run, and then the manifest, which names all runs and has
// the caller's meta. So after a power failure the tree has the pairs and the meta of one commit.
//
// # Reading the source
//
// tree.go has commits, merges and look-ups; memtable.go has the uncommitted pairs.
package lsm

import (
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
)

// Errors to branch on. Damage wraps ErrCorrupt.
var (
	ErrCorrupt = durable.ErrCorrupt
	ErrVersion = durable.ErrVersion
	ErrClosed  = table.ErrClosed
)

// A Pair is a key with its value.
type Pair = table.Pair

// Neighbors are the pairs before and after a key that have its prefix.
type Neighbors = table.Neighbors
