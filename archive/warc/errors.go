package warc

import (
	"errors"
	"fmt"
)

// ErrDamaged is wrapped by every [DamageError].
var ErrDamaged = errors.New("warc: damaged")

// ErrInvalid is wrapped by the error for a record that cannot be written.
var ErrInvalid = errors.New("warc: invalid record")

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
