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
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
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
	// Map opens a file that is memory as well. If there is none, it makes one of that size, 512
	// bytes at least, with all of its room taken, so that no write to the memory can find the disk
	// full. An error that is errors.ErrUnsupported says that the system has no such thing.
	Map(name string, size int) (*Map, error)
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
	// Truncate cuts a file at a size that it has reached. Like a write, it lasts once Sync
	// returned.
	Truncate(size int64) error
	// Sync makes writes last. After an error it is open which of them did, and a later Sync that
	// returns nil says nothing about them.
	Sync() error
	// Start hints that a range should be on its way to the disk before Sync asks for it.
	Start(at, n int64)
	// Random hints that each read is as long as what is wanted, so that more should not be read.
	Random()
}

// A Map is a file that is memory as well. What is written to it is in the file at once as far as
// other processes are concerned, those after a crash of this one included; when it gets to the
// disk, and in which order, is up to the system. It is not safe for concurrent use.
type Map struct {
	Bytes []byte // of the whole file, to be read; Write and Store write it
	close func() error
}

// ErrFault says that memory of a [Map] could not be written: there is no room or no working disk
// behind it. The room that Map takes does not help where a file system copies what it writes, as
// btrfs does.
var ErrFault = errors.New("vfs: mapped file cannot be written: the disk is full or broken")

// Write copies b to an offset. After an error some of it may have been copied.
func (m *Map) Write(at int, b []byte) (err error) {
	defer m.catch(debug.SetPanicOnFault(true), &err)
	copy(m.Bytes[at:at+len(b)], b)
	return nil
}

// Store writes an integer of 8 bytes, little endian, at a multiple of 8. Whoever reads it after a
// crash of the process, as it was or as it is now, also finds what was written to the Map before.
// After an error it is as it was.
func (m *Map) Store(at int, v uint64) error { return m.Publish(at, nil, at, v) }

// Publish is Write at one offset, followed by Store at another one.
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

// catch turns the signal that a full disk raises into an error. The signal would end the process
// otherwise. Any other panic goes on.
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

// Close makes Bytes unusable, and leaves the file.
func (m *Map) Close() error {
	m.Bytes = nil
	return m.close()
}

// leastMap is the size below which a file is one whose making was cut short.
const leastMap = 512

// Replace writes a small file as a whole and makes it last: whatever happens, the old one or the
// new one is there. Until it is whole it has another name, which ends in ".new".
func Replace(fs FS, name string, data []byte) error {
	f, err := fs.Create(name + ".new")
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(name+".new", name)
	}
	if err != nil {
		return errors.Join(err, fs.Remove(name+".new"))
	}
	return fs.Sync()
}

// ReadFile returns the bytes of a small file.
func ReadFile(fs FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("vfs: read %s: %w", name, err)
	}
	return data, nil
}
