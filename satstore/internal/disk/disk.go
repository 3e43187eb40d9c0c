// Package disk has the file code that the layers of satstore share: a decoder for untrusted bytes,
// and reads that know that a store may be closed. The rest is package durable.
package disk

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// ErrClosed is satstore's error of this name.
var ErrClosed = errors.New("satstore: store is closed")

// Corrupt returns the error of a damaged file.
func Corrupt(file string, offset int64, reason string) error {
	return durable.Corrupt(file, offset, reason)
}

// ReadFull fills b from an offset of a file. A file that ends too early is corrupt.
func ReadFull(f io.ReaderAt, name string, b []byte, at int64) error {
	err := durable.ReadFull(f, name, b, at)
	if errors.Is(err, fs.ErrClosed) { // by Store.Close, during a walk
		return ErrClosed
	}
	return err
}

// SumSize is the size of a checksum.
const SumSize = durable.SumSize

// Sum returns the CRC-32C of b.
func Sum(b []byte) uint32 { return durable.Sum(b) }

// SumOn continues a checksum: sum is the CRC-32C of the bytes before b.
func SumOn(sum uint32, b []byte) uint32 { return durable.SumOn(sum, b) }
