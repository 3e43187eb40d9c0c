// Package disk has what the layers of satstore share: reads that know that a store may be closed. The
// rest is package durable.
package disk

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// ErrClosed is satstore's error of this name.
var ErrClosed = errors.New("satstore: store is closed")

// ReadFull fills b from an offset of a file. A file that ends too early is corrupt.
func ReadFull(f io.ReaderAt, name string, b []byte, at int64) error {
	err := durable.ReadFull(f, name, b, at)
	if errors.Is(err, fs.ErrClosed) { // by Store.Close, during a walk
		return ErrClosed
	}
	return err
}
