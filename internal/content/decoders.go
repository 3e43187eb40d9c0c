package content

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// gunzip iterates over the members itself. Some servers pad the last one with other bytes, and
// browsers ignore that.
type gunzip struct {
	src *bufio.Reader
	zr  gzip.Reader
}

var gunzips = sync.Pool{New: func() any { return new(gunzip) }}

// OpenGzip is the [Opener] of gzip.
func OpenGzip(r io.Reader) (io.ReadCloser, error) {
	g := gunzips.Get().(*gunzip)
	g.src = buffered(r)
	return g, g.next()
}

// buffered returns r, which is a bufio.Reader if a [Reader] calls, as one.
func buffered(r io.Reader) *bufio.Reader {
	if br, ok := r.(*bufio.Reader); ok {
		return br
	}
	return bufio.NewReader(r)
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
		if magic, _ := g.src.Peek(2); !isGzip(magic) {
			return 0, io.EOF
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// Close implements io.Closer.
func (g *gunzip) Close() error {
	g.src = nil
	gunzips.Put(g)
	return nil
}

func isGzip(b []byte) bool { return len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b }

// inflate decodes deflate. By the standard that is zlib's format, but some servers have always sent
// the bare stream, and browsers accept both.
type inflate struct {
	io.Reader               // one of the two
	zlib      io.ReadCloser // nil until one is needed
	bare      io.ReadCloser
}

var inflates = sync.Pool{New: func() any { return &inflate{bare: flate.NewReader(nil)} }}

func openDeflate(r io.Reader) (io.ReadCloser, error) {
	d := inflates.Get().(*inflate)
	src := buffered(r)
	// zlib begins with its method, 8, and its first two bytes are a multiple of 31 (RFC 1950, 2.2).
	// A bare stream with that beginning would be a stored block whose padding is not zero, which no
	// encoder writes.
	b, _ := src.Peek(2)
	if len(b) < 2 || b[0]&0x0f != 8 || binary.BigEndian.Uint16(b)%31 != 0 {
		d.Reader = d.bare
		return d, d.bare.(flate.Resetter).Reset(src, nil)
	}
	var err error
	if d.zlib == nil {
		d.zlib, err = zlib.NewReader(src)
	} else {
		err = d.zlib.(zlib.Resetter).Reset(src, nil)
	}
	d.Reader = d.zlib
	return d, err
}

// Close implements io.Closer.
func (d *inflate) Close() error {
	inflates.Put(d)
	return nil
}

// unzstd decodes zstd.
type unzstd struct {
	*zstd.Decoder
	frames frames
}

// MaxWindow is the largest window that RFC 9659 allows for zstd. Its decoder keeps that much of what
// it has decoded.
const MaxWindow = 8 << 20

// Windows returns the most bytes that the windows of a list by [Of] can take.
func Windows(codings string) int64 { return int64(strings.Count(codings, "zstd")) * MaxWindow }

// Window returns how many of them a body may take: that of a second coding is in no header yet.
func Window(codings string, body []byte) int64 {
	rest, ok := strings.CutSuffix(codings, "zstd")
	if !ok {
		return Windows(codings)
	}
	f := frames{src: bufio.NewReader(bytes.NewReader(body))}
	var most int64
	for f.next() == nil && f.left > 0 {
		most = max(most, f.window)
		if _, err := io.CopyN(io.Discard, f.src, f.left); err != nil {
			break
		}
	}
	return most + Windows(rest)
}

var unzstds = sync.Pool{New: func() any {
	// With a concurrency of one it decodes in the caller's goroutine. The options are valid, so
	// there is no error.
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow))
	return &unzstd{Decoder: d}
}}

func openZstd(r io.Reader) (io.ReadCloser, error) {
	d := unzstds.Get().(*unzstd)
	d.frames = frames{src: buffered(r)}
	return d, d.Reset(&d.frames)
}

// Close implements io.Closer.
func (d *unzstd) Close() error {
	err := d.Reset(nil) // releases the body
	d.frames = frames{}
	unzstds.Put(d)
	return err
}

func isZstd(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	magic := binary.LittleEndian.Uint32(b)
	return magic == 0xfd2fb528 || magic&^0xf == 0x184d2a50 // a frame, or a skippable frame before it
}

// frames reads zstd up to the end of its last frame (RFC 8878, 3.1). What some servers send behind
// it is not for the decoder, which takes it for a frame that is broken.
type frames struct {
	src    *bufio.Reader
	left   int64 // bytes up to the next header, of a frame or of a block
	begun  bool  // there was a frame
	inside bool  // of a frame, whose next block follows
	summed bool  // that frame ends with a checksum
	window int64 // of that frame, if it can be decoded
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if f.left == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.src.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}

// next looks at the header that follows. One that is cut or wrong is left to the decoder.
func (f *frames) next() error {
	const block, checksum = 3, 4
	if f.inside {
		head, err := f.src.Peek(block)
		if f.left = int64(len(head)); f.left < block {
			return endOf(head, err)
		}
		bits := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16
		const last, repeated = 1, 1 // its flag, and the type of a block that is one byte on the wire
		if size := bits >> 3; bits>>1&3 == repeated {
			f.left++
		} else {
			f.left += size
		}
		if f.inside = bits&last == 0; !f.inside && f.summed {
			f.left += checksum
		}
		return nil
	}
	head, err := f.src.Peek(zstd.HeaderMaxSize)
	if f.begun && !isZstd(head) {
		return io.EOF
	}
	var h zstd.Header
	if h.Decode(head) != nil {
		f.left = int64(len(head))
		return endOf(head, err)
	}
	f.begun = true
	f.left = int64(h.HeaderSize) + int64(h.SkippableSize)
	if !h.Skippable {
		window := h.WindowSize
		if h.SingleSegment {
			window = h.FrameContentSize
		}
		f.window = int64(min(window, MaxWindow))
		f.inside, f.summed = true, h.HasCheckSum
	}
	return nil
}

// endOf returns err if nothing is left.
func endOf(left []byte, err error) error {
	if len(left) > 0 {
		return nil
	}
	return err
}
