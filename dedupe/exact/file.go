package exact

import (
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var (
	ErrCorrupt = durable.ErrCorrupt // every CorruptError unwraps to it
	ErrVersion = durable.ErrVersion // sound, but written by another version of this package
)

// A CorruptError reports which file is damaged, and where.
type CorruptError struct {
	File   string
	Offset int64 // of the damaged part, in bytes
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string { return (*durable.CorruptError)(e).Error() }

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// A window is the part of a file that was read last.
type window struct {
	file  vfs.File
	name  func() string
	end   int64  // bytes of the file that count
	ahead int64  // how many to read at once
	count *int64 // of bytes that were read; may be nil

	bytes []byte
	start int64 // of them in the file
}

// at returns bytes of the file, which must be before the end. They are valid until the next call.
func (w *window) at(place, n int64) ([]byte, error) {
	if place < w.start || place+n > w.start+int64(len(w.bytes)) {
		size := min(max(w.ahead, n), w.end-place)
		w.bytes = slices.Grow(w.bytes[:0], int(size))[:size]
		w.start = place
		if w.count != nil {
			*w.count += size
		}
		if err := readFull(w.file, w.name, w.bytes, place); err != nil {
			w.forget()
			return nil, err
		}
	}
	return w.bytes[place-w.start:][:n], nil
}

// forget makes the next call read again.
func (w *window) forget() { w.bytes = w.bytes[:0] }

// readFull fills b. A file that ends too early is corrupt. name is only called after an error.
func readFull(f vfs.File, name func() string, b []byte, at int64) error {
	if n, _ := f.ReadAt(b, at); n == len(b) {
		return nil
	}
	return durable.ReadFull(f, name(), b, at)
}
