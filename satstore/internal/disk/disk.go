// Package disk has the file code that the layers of satstore share: a decoder for untrusted bytes,
// checksums, and the error that says where a file is damaged.
package disk

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Errors that satstore exports under the same names.
var (
	ErrCorrupt = errors.New("satstore: corrupt file")
	ErrClosed  = errors.New("satstore: store is closed")
)

// A CorruptError says which file is damaged, and where.
type CorruptError struct {
	File   string
	Offset int64 // of the damaged piece, in bytes
	Reason string
}

// Error returns a message with all fields.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("satstore: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Corrupt returns a CorruptError.
func Corrupt(file string, offset int64, reason string) error {
	return &CorruptError{file, offset, reason}
}

// ReadFull fills b from an offset of a file. A file that ends too early is corrupt.
func ReadFull(f io.ReaderAt, name string, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return Corrupt(name, at, "the file ends too early")
	case errors.Is(err, fs.ErrClosed): // by Store.Close, during a walk
		return ErrClosed
	}
	return fmt.Errorf("satstore: read %s: %w", name, err)
}

// ReadFile returns all bytes of a file.
func ReadFile(dir vfs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("satstore: open %s: %w", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("satstore: read %s: %w", name, err)
	}
	b := make([]byte, size)
	return b, ReadFull(f, name, b, 0)
}

// Discard closes and removes a file after an error. Further errors are ignored.
func Discard(dir vfs.FS, name string, f vfs.File) {
	_ = f.Close()
	_ = dir.Remove(name)
}

// SumSize is the size of a checksum.
const SumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the CRC-32C of b.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// SumOn continues a checksum: sum is the CRC-32C of the bytes before b.
func SumOn(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
