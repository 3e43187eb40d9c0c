package satstore

import (
	"errors"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// Errors that callers may want to tell apart. ErrReadOnly comes with its cause, such as ENOSPC,
// until a Sync succeeds. What was done before is safe; the change that met it first may have been
// made.
var (
	ErrClosed   = disk.ErrClosed
	ErrCorrupt  = disk.ErrCorrupt // every CorruptError unwraps to it
	ErrLocked   = errors.New("satstore: another process has opened the store")
	ErrReadOnly = errors.New("satstore: store cannot be written to until a Sync succeeds")
	ErrUnknown  = errors.New("satstore: no record has this id")
	ErrSize     = errors.New("satstore: id is empty, or id or data are too large")
	ErrDone     = errors.New("satstore: record was returned before")
	ErrBusy     = errors.New("satstore: another Due is running")
	ErrOptions  = errors.New("satstore: options do not fit")
)

// A CorruptError says which File is damaged, at which Offset in bytes the piece begins that is
// wrong, and the Reason. It unwraps to [ErrCorrupt].
type CorruptError = disk.CorruptError
