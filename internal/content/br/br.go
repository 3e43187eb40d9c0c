// Package br decodes the content coding br with pooled decoders.
package br

import (
	"bufio"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
)

// Open returns a reader that decodes the coding br from r. It must be closed, and must not be used
// afterwards. It is not safe for concurrent use.
func Open(r io.Reader) (io.ReadCloser, error) {
	src, ok := r.(*bufio.Reader)
	if !ok {
		src = bufio.NewReader(r)
	}
	d := decoders.Get().(*decoder)
	d.wide = hasWideWindow(src)
	return d, d.Reader.Reset(src)
}

var decoders = sync.Pool{New: func() any { return &decoder{Reader: new(brotli.Reader)} }}

// decoder adapts the reader of package brotli to what servers send.
type decoder struct {
	*brotli.Reader
	wide bool // the stream's window is too large to keep
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	if err != nil && err.Error() == excessive {
		// Some servers pad a body, and browsers do not mind.
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (d *decoder) Close() error {
	if !d.wide {
		decoders.Put(d)
	}
	return nil
}

// excessive is the text of an error that package brotli does not export: the stream is complete,
// and something follows it.
const excessive = "brotli: excessive input"

// hasWideWindow reports whether the stream that src begins with may use a window of more than
// 4 MiB. The lowest four bits are 1 and three bits that, if they are not 0, make a window of
// 2^(17+n) bytes (RFC 7932, 9.1).
func hasWideWindow(src *bufio.Reader) bool {
	first, err := src.Peek(1)
	return err == nil && first[0]&1 == 1 && first[0]>>1&7 > 22-17
}
