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

// Defaults of options, profiles, and the limit of lines in the header of a record and in the head of an HTTP
// message: each costs far more than its bytes, and in a compressed file the same line again costs next to
// no bytes.
const (
	DefaultLevel = 6 // in EncoderOptions, with Gzip
	MaxLines     = 1000

	// The profiles of revisit records, WARC 1.1 section 6.7.
	ProfileIdentical   = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

	maxHeader         = 1 << 20   // bytes of the header of a record
	defaultMaxDecoded = 256 << 20 // as the limit of HTTP.Decoded
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
