package exact

import (
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

// readFull fills b. A file that ends too early is corrupt. name is only called after an error.
func readFull(f vfs.File, name func() string, b []byte, at int64) error {
	if n, _ := f.ReadAt(b, at); n == len(b) {
		return nil
	}
	return durable.ReadFull(f, name(), b, at)
}
