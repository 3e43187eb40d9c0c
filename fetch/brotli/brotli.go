// Package brotli decodes the content coding br for a fetch.Client.
//
//	fetch.Options{Brotli: brotli.New}
//
// A Client with this option also asks for the coding. Its limits, MaxBody and MaxRatio, hold for
// it as for all codings.
//
// # Why it is a package of its own
//
// It adds a module and a quarter of a megabyte to a program. On typical pages it saves about a
// tenth of the bytes that gzip needs, and decodes at three quarters of gzip's speed, or less for
// small pages. Servers that support both tend to send br, whatever the order of preference.
//
// # Memory
//
// While it decodes, a reader holds a buffer, its code tables (4 MiB at most) and as much of the
// window as the stream demands (16 MiB at most, and half as much again while it grows). It is kept
// for the next stream, unless its window was larger than 4 MiB.
package brotli

import (
	"bufio"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
)

// New returns a reader that decodes the coding br from r, for fetch.Options. The reader must be
// closed, and must not be used afterwards. It is not safe for concurrent use.
func New(r io.Reader) (io.ReadCloser, error) {
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
