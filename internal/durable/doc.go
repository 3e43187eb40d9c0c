// Package durable has what everything that is kept on disk shares: checksums, frames and
// streams that know their version, the replacement of a file, and two errors.
//
// # Two errors
//
// A file is damaged if it has bytes that nobody wrote; the error is a [CorruptError]. A file of
// another version is sound, but was written by another version of the program; the error is
// [ErrVersion]. These must never be confused: what is damaged may be set aside and rebuilt, and
// what is of another version belongs to another program. So a version is only believed if its
// checksum is right.
package durable

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrCorrupt is wrapped by every [CorruptError].
var ErrCorrupt = errors.New("corrupt data")

// ErrVersion means that a file is sound, but of a version that this program cannot read.
var ErrVersion = errors.New("written by another version")

// A CorruptError says which file is damaged, and where.
//
// A package that returns it documents an error type of its own with the same fields, and does not
// convert: errors.As finds a *CorruptError as any such type.
type CorruptError struct {
	File   string
	Offset int64 // of the damaged piece, in bytes
	Reason string
}

// Error returns all fields. What was read from elsewhere has no file.
func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// As sets a target whose type has the fields of a CorruptError.
func (e *CorruptError) As(target any) bool {
	to := reflect.ValueOf(target).Elem()
	from := reflect.ValueOf(e)
	if to.Kind() != reflect.Pointer || !from.CanConvert(to.Type()) {
		return false
	}
	to.Set(from.Convert(to.Type()))
	return true
}

// Corrupt returns a CorruptError.
func Corrupt(file string, offset int64, reason string) error {
	return &CorruptError{file, offset, reason}
}
