// Package vfs holds the file system that stores write through, with no more than they need.
//
// [OS] is a directory of the operating system. [Mem] is one in memory that can lose its power: what
// was written and not synced may then be kept, torn or lost. Whoever writes through an [FS] can so
// be shown a full disk, a broken one, a flipped bit and a power failure in a test of milliseconds.
//
// # Durability
//
// A write lasts once [File.Sync] returned. The creation, renaming or removal of a file lasts once
// [FS.Sync] returned; until then they last in their order, up to any of them.
package vfs

import (
	"errors"
	"io"
)

// ErrLocked says that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("vfs: locked by another user")

// An FS is one flat directory.
type FS interface {
	// Open opens a file that exists, for reading and writing.
	Open(name string) (File, error)
	// Create makes an empty file, in the place of one that is there.
	Create(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// List returns the names of all files, in order.
	List() ([]string, error)
	// Sync makes creations, renamings and removals last.
	Sync() error
	// Lock returns ErrLocked if the file of that name is locked. The end of the process unlocks it.
	Lock(name string) (io.Closer, error)
}

// A File is read and written at offsets. Reads and writes may go on at the same time.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Sync makes writes last. After an error it is open which of them did, and a later Sync that
	// returns nil says nothing about them.
	Sync() error
	// Start hints that a range should be on its way to the disk before Sync asks for it.
	Start(at, n int64)
	// Random hints that each read is as long as what is wanted, so that more should not be read.
	Random()
}
