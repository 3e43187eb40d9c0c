// Package brotli decodes the content coding br for a fetch.Client.
//
//	fetch.Options{Decoders: map[string]func() fetch.Decoder{"br": brotli.New}}
//
// A Client with this option also asks for the coding. What its decoders put out is limited as that
// of all codings is: by MaxBody and MaxRatio.
//
// # Why it is a package of its own
//
// It adds a module and a quarter of a megabyte to a program. What is in it for a crawler are bytes
// on the wire, about a tenth fewer than gzip's for pages, at three quarters of gzip's speed, or less
// for small ones. Servers that have both tend to send br whatever the order in which they are asked.
//
// # Memory
//
// While it decodes, a decoder holds a buffer, its code tables (4 MiB at most) and as much of the
// window as the stream demands (16 MiB at most, and half as much again while it grows). It keeps
// them for its next stream, but for a window of more than 4 MiB.
package brotli

import (
	"bytes"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/spinneret-go/spinneret/fetch"
)

// New returns a decoder, for [fetch.Options].
func New() fetch.Decoder { return new(decoder) }

// errInput keeps to what fetch promises a Decoder, of which the look at the window makes use.
var errInput = errors.New("brotli: decoder wants a bytes.Reader")

// decoder adds to the reader of package brotli what differs between its idea of a stream and what
// servers send.
type decoder struct {
	*brotli.Reader      // nil until there is a stream, and after one with a wide window
	wide           bool // the stream's window is one that is not kept
}

// Reset implements fetch.Decoder.
func (d *decoder) Reset(r io.Reader) error {
	src, ok := r.(*bytes.Reader)
	if !ok {
		return errInput
	}
	if d.Reader == nil || d.wide {
		d.Reader = new(brotli.Reader)
	}
	d.wide = hasWideWindow(src)
	return d.Reader.Reset(src)
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

// excessive is the text of an error that package brotli does not export: the stream is complete,
// and something follows it.
const excessive = "brotli: excessive input"

// hasWideWindow reports whether the stream that src begins with may use a window of more than
// 4 MiB. The lowest four bits are 1 and three bits that, if they are not 0, make a window of
// 2^(17+n) bytes (RFC 7932, 9.1).
func hasWideWindow(src *bytes.Reader) bool {
	var first [1]byte
	if _, err := src.ReadAt(first[:], src.Size()-int64(src.Len())); err != nil {
		return false
	}
	return first[0]&1 == 1 && first[0]>>1&7 > 22-17
}
