package warc

import (
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/content"
)

// Errors that callers may want to distinguish.
var (
	// ErrDamaged is wrapped by every [DamageError].
	ErrDamaged = errors.New("warc: damaged")

	// ErrInvalid is wrapped by the error for a record that cannot be written.
	ErrInvalid = errors.New("warc: invalid record")

	// ErrTooLarge is wrapped by the error that ends a decoded body at its limit.
	ErrTooLarge = content.ErrTooLarge
)

// Defaults of options.
const (
	DefaultLevel      = 6         // in EncoderOptions, with Gzip
	DefaultMaxHeader  = 1 << 20   // in ReaderOptions
	DefaultMaxDecoded = 256 << 20 // as the limit of HTTP.Decoded
)

// DamageError is damage at a position of a file.
type DamageError struct {
	File   string // from the options, or the Name of the source
	Offset int64  // in bytes, of the damaged member or record
	Reason string
}

// Error returns a text with all fields.
func (e *DamageError) Error() string {
	return fmt.Sprintf("warc: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }
