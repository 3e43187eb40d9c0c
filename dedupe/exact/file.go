package exact

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Every [CorruptError] unwraps to ErrCorrupt.
var ErrCorrupt = errors.New("exact: corrupt file")

// A CorruptError reports which file is damaged, and where.
type CorruptError struct {
	File   string
	Offset int64 // of the damaged part, in bytes
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("exact: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A writer appends to a file in large writes. It remembers the first error.
type writer struct {
	to  vfs.File
	at  int64 // where buf goes
	buf []byte
	err error
}

// writeSize is a size beyond which larger writes and reads are not faster.
const writeSize = 256 << 10

// write copies b into the buffer. Errors are reported by flush.
func (w *writer) write(b []byte) {
	if len(w.buf)+len(b) > writeSize {
		_ = w.flush() // the error is kept
	}
	w.buf = append(w.buf, b...)
}

// flush writes the buffer, and returns the first error. It also starts the write to disk, so that a
// later sync has less to do.
func (w *writer) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.to.WriteAt(w.buf, w.at)
		w.to.Start(w.at, int64(len(w.buf)))
		w.at += int64(len(w.buf))
	}
	w.buf = w.buf[:0]
	return w.err
}

// readFull fills b. A file that ends too early is corrupt. name is only called after an error.
func readFull(f vfs.File, name func() string, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return &CorruptError{name(), at, "the file ends too early"}
	}
	return fmt.Errorf("exact: read %s: %w", name(), err)
}
