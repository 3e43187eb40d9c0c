package satstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// What callers may want to tell apart. ErrReadOnly comes with what was the matter, such as ENOSPC,
// until a Sync succeeds. What was done before is safe; the change that met it first may turn out to
// have been made, if it was too large to wait for others.
var (
	ErrClosed   = errors.New("satstore: store is closed")
	ErrLocked   = errors.New("satstore: another process has opened the store")
	ErrReadOnly = errors.New("satstore: store cannot be written to") // until a Sync succeeds
	ErrUnknown  = errors.New("satstore: no record has this id")
	ErrSize     = errors.New("satstore: id is empty, or id or data are too large")
	ErrDone     = errors.New("satstore: record was returned before")
	ErrBusy     = errors.New("satstore: another Due is running")
	ErrNoIndex  = errors.New("satstore: a basic store has no index of ids")
	ErrOptions  = errors.New("satstore: options are impossible, or differ from those at creation")
	ErrCorrupt  = errors.New("satstore: corrupt file") // every CorruptError unwraps to it
)

// A CorruptError says which file is damaged, and where.
type CorruptError struct {
	File   string
	Offset int64 // in bytes, of the piece that is wrong
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("satstore: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// readFull fills b from a file; one that ends too early is corrupt.
func readFull(f io.ReaderAt, name string, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return &CorruptError{name, at, "the file ends too early"}
	case errors.Is(err, fs.ErrClosed): // by Store.Close, in the midst of a walk or a backup
		return ErrClosed
	}
	return fmt.Errorf("satstore: read %s: %w", name, err)
}
