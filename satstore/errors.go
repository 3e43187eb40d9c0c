package satstore

import (
	"errors"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// Errors to branch on. ErrReadOnly wraps its cause, such as ENOSPC, and lasts until a Sync
// succeeds. Earlier changes are safe. The outcome of the first change that fails with it is
// unknown.
var (
	ErrClosed   = disk.ErrClosed
	ErrCorrupt  = disk.ErrCorrupt // every CorruptError unwraps to it
	ErrLocked   = errors.New("satstore: store is already open, here or in another process")
	ErrReadOnly = errors.New("satstore: store is read-only until a Sync succeeds")
	ErrUnknown  = errors.New("satstore: no record has this id")
	ErrSize     = errors.New("satstore: id is empty, or id or data are too large")
	ErrDone     = errors.New("satstore: record has already been returned")
	ErrBusy     = errors.New("satstore: another Due is running")
	ErrOptions  = errors.New("satstore: options do not fit")
)

// A CorruptError names the damaged File, the Offset in bytes of the damaged piece, and the Reason.
// It unwraps to [ErrCorrupt].
type CorruptError = disk.CorruptError
