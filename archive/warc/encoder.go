package warc

import (
	"crypto/sha1"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is the compression of each record.
type Compression int

// The compressions. Every tool reads [Gzip]; [Zstd] is faster both ways, but fewer tools read it.
const (
	Gzip Compression = iota
	Zstd
	None
)

// Extension returns the file name extension for such records.
func (c Compression) Extension() string {
	switch c {
	case Gzip:
		return ".warc.gz"
	case Zstd:
		return ".warc.zst"
	}
	return ".warc"
}

// EncoderOptions configures the compression of records. The zero EncoderOptions is gzip at its
// default level.
type EncoderOptions struct {
	// Compression is one of the constants. 0 means Gzip.
	Compression Compression

	// Level is the effort: 1 to 9 with Gzip, 1 to 4 with Zstd. 0 means 6 with Gzip and 1 with
	// Zstd. Negative means no compression, still as gzip, and the same as 1 with Zstd.
	Level int

	// NoBlockDigest leaves out WARC-Block-Digest, for which blocks are hashed. The checksums of
	// gzip and zstd detect the same damage. false means that each record has one.
	NoBlockDigest bool
}

// window is the zstd window, which bounds the memory of a compressor. Few pages are larger.
const window = 1 << 20

var recordEnd = []byte("\r\n\r\n")

// Encoder turns records into self-contained members. Reuse it: a compressor is too large to
// allocate for each record. It is not safe for concurrent use.
type Encoder struct {
	compression Compression
	unhashed    bool
	gz          *gzip.Writer
	zs          *zstd.Encoder
	out         counter
	sha         hash.Hash
	scratch     []byte // the encoded header
}

// counter counts the bytes of a member.
type counter struct {
	to io.Writer
	n  int64
}

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// NewEncoder returns an error if options are out of range. The compressor is allocated on first
// use, so an unused encoder costs next to nothing.
func NewEncoder(o EncoderOptions) (*Encoder, error) {
	e := &Encoder{compression: o.Compression, unhashed: o.NoBlockDigest, sha: sha1.New()}
	var err error
	switch o.Compression {
	case Gzip:
		e.gz, err = gzip.NewWriterLevel(nil, gzipLevel(o.Level))
	case Zstd:
		err = e.initZstd(o.Level)
	case None:
	default:
		err = fmt.Errorf("unknown compression %d", o.Compression)
	}
	if err != nil {
		return nil, fmt.Errorf("warc: new encoder: %w", err)
	}
	return e, nil
}

// gzipLevel converts Level for gzip, where 0 means no compression. gzip rejects invalid levels.
func gzipLevel(level int) int {
	switch {
	case level < 0:
		return gzip.NoCompression
	case level == 0:
		return DefaultLevel
	}
	return level
}

// initZstd sets one goroutine, since callers already compress concurrently, and enables the
// checksum, which detects damage before the digest does.
func (e *Encoder) initZstd(level int) (err error) {
	if level = max(level, 1); level > int(zstd.SpeedBestCompression) {
		return fmt.Errorf("level %d is above %d", level, int(zstd.SpeedBestCompression))
	}
	e.zs, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(level)),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	return err
}

// Encode writes one record to dst, with the parts one after the other as its block, and returns the
// number of bytes before and after compression. A zero ID in h is replaced by a new one. The parts
// are read twice, since their digest comes first.
func (e *Encoder) Encode(dst io.Writer, h *Head, parts ...[]byte) (raw, packed int64, err error) {
	if err := h.check(); err != nil {
		return 0, 0, err
	}
	h.length = 0
	e.sha.Reset()
	for _, part := range parts {
		h.length += int64(len(part))
		if !e.unhashed {
			_, _ = e.sha.Write(part) // documented never to fail
		}
	}
	w := e.begin(dst, h)
	_, err = w.Write(e.scratch)
	for _, part := range parts {
		if err == nil {
			_, err = w.Write(part)
		}
	}
	return e.finish(w, h, err)
}

// EncodeFrom is like Encode, for a block too large for memory. It reads block from its current
// position to its end, twice.
func (e *Encoder) EncodeFrom(dst io.Writer, h *Head, block io.ReadSeeker) (
	raw, packed int64, err error) {
	if err := h.check(); err != nil {
		return 0, 0, err
	}
	start, err := block.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, 0, fmt.Errorf("warc: read block: %w", err)
	}
	e.sha.Reset()
	var sum io.Writer = e.sha
	if e.unhashed {
		sum = io.Discard
	}
	if h.length, err = io.Copy(sum, block); err == nil {
		_, err = block.Seek(start, io.SeekStart)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("warc: read block: %w", err)
	}
	w := e.begin(dst, h)
	if _, err = w.Write(e.scratch); err == nil {
		var n int64
		n, err = io.Copy(w, io.LimitReader(block, h.length))
		if err == nil && n < h.length {
			err = fmt.Errorf("%w: the block shrank while it was read", ErrInvalid)
		}
	}
	return e.finish(w, h, err)
}

// begin encodes the header, whose digest is now known, and returns the writer for the block.
func (e *Encoder) begin(dst io.Writer, h *Head) io.Writer {
	if h.ID == (ID{}) {
		h.ID = NewID()
	}
	if h.unhashed = e.unhashed; !h.unhashed {
		e.sha.Sum(h.block[:0])
	}
	e.scratch = h.append(e.scratch[:0])
	e.out = counter{to: dst}
	switch e.compression {
	case Gzip:
		e.gz.Reset(&e.out)
		e.gz.ModTime = time.Unix(0, 0) // "no time": the zero Time would be written as one in 2042
		return e.gz
	case Zstd:
		e.zs.ResetContentSize(&e.out, int64(len(e.scratch)+len(recordEnd))+h.length)
		return e.zs
	}
	return &e.out
}

// finish ends the member, even after an error, so that the compressor releases dst.
func (e *Encoder) finish(w io.Writer, h *Head, err error) (raw, packed int64, _ error) {
	if err == nil {
		_, err = w.Write(recordEnd)
	}
	if closer, ok := w.(io.Closer); ok {
		if closed := closer.Close(); err == nil {
			err = closed
		}
	}
	raw = int64(len(e.scratch)+len(recordEnd)) + h.length
	e.out.to = nil
	return raw, e.out.n, err
}

// Block encodes the block of a warcinfo or metadata record, of type application/warc-fields.
func (f Fields) Block() (block []byte) {
	for i := range f {
		block = appendField(block, f[i].Name, f[i].Value)
	}
	return block
}
