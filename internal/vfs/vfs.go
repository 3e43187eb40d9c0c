// Package vfs is a minimal file system interface for stores.
//
// [OS] is a directory of the operating system. [Mem] is a directory in memory that simulates power
// failures: unsynced writes may then be kept, torn or lost. So a test of a store can cover a full
// disk, a broken disk, a flipped bit and a power failure in milliseconds.
//
// # Durability
//
// A write is durable once [File.Sync] has returned. The creation, renaming or removal of a file is
// durable once [FS.Sync] has returned. Before that, a power failure keeps any of these changes and
// loses the others: a rename may survive although an earlier creation does not.
package vfs

import (
	"encoding/binary"
	"errors"
	"io"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// ErrLocked means that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("vfs: locked by another user")

// An FS is one flat directory.
type FS interface {
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// Create creates an empty file, and replaces an existing one.
	Create(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// List returns the names of all files, in order.
	List() ([]string, error)
	// Map opens a memory-mapped file. If it does not exist, Map creates it with that size, at least
	// 512 bytes, and allocates all of its space, so that no later write to the memory fails because
	// the disk is full. The error wraps errors.ErrUnsupported if the system has no mapped files.
	Map(name string, size int) (*Map, error)
	// Sync makes creations, renames and removals durable.
	Sync() error
	// Lock locks the file of that name, or returns ErrLocked. The lock ends with the process.
	Lock(name string) (io.Closer, error)
}

// A File is read and written at offsets. Reads and writes may be concurrent.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Truncate truncates a file to at most its current size. Like a write, it is durable once Sync
	// has returned.
	Truncate(size int64) error
	// Sync makes writes durable. After an error it is unknown which of them are durable, even if a
	// later Sync succeeds.
	Sync() error
	// Start is a hint to start writing a range to disk before Sync.
	Start(at, n int64)
	// Random is a hint that reads are random, so that read-ahead is useless.
	Random()
}

// A Map is a memory-mapped file. Other processes see a write immediately, even if this one crashes
// afterwards. The system decides when, and in which order, writes reach the disk. It is not safe
// for concurrent use.
type Map struct {
	Bytes []byte // the whole file, for reading; Write and Store write to it
	close func() error
}

// ErrFault means that the memory of a [Map] could not be written: the disk is full or broken.
// Allocating the space in advance does not help with copy-on-write file systems such as btrfs.
var ErrFault = errors.New("vfs: mapped file cannot be written: the disk is full or broken")

// Write copies b to an offset. After an error, part of b may have been copied.
func (m *Map) Write(at int, b []byte) (err error) {
	defer m.catch(debug.SetPanicOnFault(true), &err)
	copy(m.Bytes[at:at+len(b)], b)
	return nil
}

// Store writes an 8-byte little-endian integer at a multiple of 8. It is atomic and ordered: a
// reader that finds the new value after a crash of the process also finds all earlier writes to the
// Map. After an error the old value is unchanged.
func (m *Map) Store(at int, v uint64) error { return m.Publish(at, nil, at, v) }

// Publish is Write at one offset, followed by Store at another.
func (m *Map) Publish(at int, b []byte, word int, v uint64) (err error) {
	defer m.catch(debug.SetPanicOnFault(true), &err)
	copy(m.Bytes[at:at+len(b)], b)
	m.store(word, v)
	return nil
}

func (m *Map) store(at int, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	word := (*uint64)(unsafe.Pointer(&m.Bytes[at : at+8][0]))
	atomic.StoreUint64(word, binary.NativeEndian.Uint64(b[:]))
}

// catch converts the signal of a full disk, which would otherwise end the process, into an error.
// Other panics continue.
func (m *Map) catch(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if r := recover(); r != nil {
		fault, ok := r.(interface{ Addr() uintptr })
		first := uintptr(unsafe.Pointer(unsafe.SliceData(m.Bytes)))
		if !ok || fault.Addr()-first >= uintptr(len(m.Bytes)) {
			panic(r)
		}
		*err = ErrFault
	}
}

// Close unmaps Bytes. The file remains.
func (m *Map) Close() error {
	m.Bytes = nil
	return m.close()
}

// minMapSize is the minimum size of a mapped file. A smaller file is left over from an interrupted
// creation.
const minMapSize = 512
