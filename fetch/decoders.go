package fetch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

var errInput = errors.New("fetch: decoder wants a bytes.Reader")

// gunzip walks from member to member itself, because servers pad the last one with bytes that are
// none, and browsers do not mind.
type gunzip struct {
	src *bytes.Reader
	zr  gzip.Reader
}

func newGunzip() Decoder { return new(gunzip) }

func isGzip(b []byte) bool { return len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b }

// gzipSize returns what the trailer of the last member says of its size.
func gzipSize(raw []byte) int64 {
	return int64(binary.LittleEndian.Uint32(raw[len(raw)-4:]))
}

// Reset implements Decoder.
func (g *gunzip) Reset(r io.Reader) error {
	src, ok := r.(*bytes.Reader)
	if !ok {
		return errInput
	}
	g.src = src
	return g.next()
}

func (g *gunzip) next() error {
	if err := g.zr.Reset(g.src); err != nil {
		return err
	}
	g.zr.Multistream(false)
	return nil
}

// Read implements io.Reader over all members.
func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.zr.Read(p)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil // the next Read returns it again
			}
			return n, err
		}
		if !isGzip(peek(g.src)) {
			return 0, io.EOF
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// peek returns the next two bytes of src, or fewer at its end.
func peek(src *bytes.Reader) []byte {
	var next [2]byte
	n, _ := src.ReadAt(next[:], src.Size()-int64(src.Len()))
	return next[:n]
}

// inflate decodes deflate. The coding of that name is zlib's format by the standard, but some
// servers have always sent the bare stream, and browsers take both.
type inflate struct {
	io.Reader               // one of the two
	zlib      io.ReadCloser // nil until one is needed
	bare      io.ReadCloser
}

func newInflate() Decoder { return &inflate{bare: flate.NewReader(nil)} }

// Reset implements Decoder.
func (d *inflate) Reset(r io.Reader) (err error) {
	src, ok := r.(*bytes.Reader)
	if !ok {
		return errInput
	}
	// zlib begins with its method, 8, and with a check: the first two bytes are a multiple of 31
	// (RFC 1950, 2.2). A bare stream would have to begin with a stored block whose padding is not
	// zero, which no encoder writes.
	if b := peek(src); len(b) < 2 || b[0]&0x0f != 8 || binary.BigEndian.Uint16(b)%31 != 0 {
		d.Reader = d.bare
		return d.bare.(flate.Resetter).Reset(src, nil)
	}
	if d.zlib == nil {
		d.zlib, err = zlib.NewReader(src)
	} else {
		err = d.zlib.(zlib.Resetter).Reset(src, nil)
	}
	d.Reader = d.zlib
	return err
}

// maxWindow is what RFC 9659 lets a zstd body demand of a client's memory.
const maxWindow = 8 << 20

func newUnzstd() Decoder {
	// One at a time is decoded in the caller's goroutine. The options are constant and valid, so
	// that there can be no error.
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	return d
}

func isZstd(b []byte) bool {
	// A frame, or one that is to be skipped and comes before it.
	return len(b) >= 4 && (binary.LittleEndian.Uint32(b) == 0xfd2fb528 ||
		binary.LittleEndian.Uint32(b)&^0xf == 0x184d2a50)
}
