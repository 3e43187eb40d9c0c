package warc

import (
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/archive/internal/content"
)

// Errors that callers tell apart.
var (
	// ErrDamaged is wrapped by every [DamageError].
	ErrDamaged = errors.New("warc: damaged")

	// ErrInvalid is wrapped by the error for a record that cannot be written.
	ErrInvalid = errors.New("warc: invalid record")

	// ErrTooLarge is wrapped by the error that ends a decoded body at a bound.
	ErrTooLarge = content.ErrTooLarge
)

// What zero means.
const (
	DefaultLevel      = 6         // in EncoderOptions, with Gzip
	DefaultMaxHeader  = 1 << 20   // in ReaderOptions
	DefaultMaxDecoded = 256 << 20 // as the limit of HTTP.Decoded
)

// DamageError says where a file does not hold what it should.
type DamageError struct {
	File   string // as given in the options, or as the source calls itself
	Offset int64  // in bytes, of the member or record that is damaged
	Reason string
}

// Error returns all fields.
func (e *DamageError) Error() string {
	return fmt.Sprintf("warc: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }
