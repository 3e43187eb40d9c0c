package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// ReadFull fills b from an offset of a file. A file that ends too early is corrupt.
func ReadFull(f io.ReaderAt, name string, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return Corrupt(name, at, "the file ends too early")
	}
	return fmt.Errorf("read %s: %w", name, err)
}

// Required turns the error for a file that has to be there, but is missing, into a [CorruptError].
func Required(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return Corrupt(name, 0, "the file is missing")
	}
	return err
}

// ReadFile returns the bytes of a small file.
func ReadFile(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	b := make([]byte, size)
	return b, ReadFull(f, name, b, 0)
}

// Discard closes and removes a file after an error. Further errors are ignored.
func Discard(fs vfs.FS, name string, f vfs.File) {
	_ = f.Close()
	_ = fs.Remove(name)
}

// NewName is the ending of the temporary file of [Replace].
const NewName = ".new"

// Replace is [ReplaceWith] for data that is in memory. Its temporary file is the name and [NewName].
func Replace(fs vfs.FS, name string, data []byte) error {
	return ReplaceWith(fs, name, name+NewName, func(f vfs.File) error {
		_, err := f.WriteAt(data, 0)
		return err
	})
}

// ReplaceWith replaces a file by what write writes to another one, whose name is temp: after a power
// failure, either the old or the new one is there. It syncs the directory before the rename, so that
// the names of the files that the new one refers to are durable before it is, and again after it. It
// leaves no temporary file, even if write panics.
//
// After an error that wraps [ErrUnknown], either of the two may be found, and names of files that the
// new one refers to may get lost.
func ReplaceWith(fs vfs.FS, name, temp string, write func(f vfs.File) error) (err error) {
	f, err := fs.Create(temp)
	if err != nil {
		return fmt.Errorf("create %s: %w", temp, err)
	}
	closed, renamed := false, false
	defer func() {
		if !closed {
			_ = f.Close()
		}
		if !renamed {
			_ = fs.Remove(temp) // the first error says more
		}
	}()
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err == nil {
		closed, err = true, f.Close()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", temp, err)
	}
	if err = fs.Sync(); vfs.Exhausted(err) {
		return fmt.Errorf("sync the directory of %s: %w", name, err) // it was not even opened
	}
	if err == nil {
		if err = fs.Rename(temp, name); err == nil {
			renamed = true
			err = fs.Sync()
		}
	}
	if err != nil {
		return fmt.Errorf("%w: replace %s: %w", ErrUnknown, name, err)
	}
	return nil
}

// ErrUnknown means that the state on disk is unknown: the disk failed at a moment when it may or
// may not have done what it was told. A later sync that succeeds does not settle it; only reading
// again does.
var ErrUnknown = errors.New("state on disk is unknown")

// A Writer appends to a file in large writes, and remembers the first error. It is not safe for
// concurrent use.
type Writer struct {
	To  vfs.File
	At  int64 // where Buf goes
	Buf []byte
	Err error
}

// WriteSize is a size beyond which larger writes and reads are not faster.
const WriteSize = 256 << 10

// Write copies b into the buffer. Flush reports errors.
func (w *Writer) Write(b []byte) {
	if len(w.Buf)+len(b) > WriteSize {
		_ = w.Flush() // the error is kept
	}
	w.Buf = append(w.Buf, b...)
}

// End returns the offset of the next byte.
func (w *Writer) End() int64 { return w.At + int64(len(w.Buf)) }

// Flush writes the buffer, and returns the first error. It also starts the write to disk, so that a
// later sync has less to do.
func (w *Writer) Flush() error {
	if w.Err == nil && len(w.Buf) > 0 {
		_, w.Err = w.To.WriteAt(w.Buf, w.At)
		w.To.Start(w.At, int64(len(w.Buf)))
	}
	w.At += int64(len(w.Buf))
	w.Buf = w.Buf[:0]
	return w.Err
}
