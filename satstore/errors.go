package satstore

import (
	"errors"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// Errors to branch on. ErrReadOnly wraps its cause, such as ENOSPC, and lasts until a Sync
// succeeds. Earlier changes are safe. The outcome of the first change that fails with it is
// unknown.
var (
	ErrClosed   = extent.ErrClosed
	ErrCorrupt  = durable.ErrCorrupt // every CorruptError unwraps to it
	ErrVersion  = durable.ErrVersion // sound, but written by another version of this package
	ErrLocked   = errors.New("satstore: store is already open, here or in another process")
	ErrReadOnly = errors.New("satstore: store is read-only until a Sync succeeds")
	ErrUnknown  = errors.New("satstore: no record has this id")
	ErrSize     = errors.New("satstore: id is empty, or id or data are too large")
	ErrDone     = errors.New("satstore: record has already been returned")
	ErrBusy     = errors.New("satstore: Due cannot run now") // another one runs, or too many records are out
	ErrOptions  = errors.New("satstore: options do not fit")
)

// A CorruptError says which file is damaged, and where. It unwraps to [ErrCorrupt].
type CorruptError struct {
	File   string
	Offset int64 // of the damaged piece, in bytes
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string { return (*durable.CorruptError)(e).Error() }

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
