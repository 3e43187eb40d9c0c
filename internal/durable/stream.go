package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// A stream is the form of a snapshot that is written and read in one pass: a magic of eight bytes,
// which ends with the number of the version, and frames. A frame is the length of its payload (four
// bytes, little endian), the payload, and the CRC-32C of the stream up to the end of the payload. So
// a lost, repeated or moved frame is detected like a modified one. An empty frame is the last.
//
// What a snapshot means is in the payloads, without regard to where a frame ends. This layout is the
// same in all versions, so that each can tell another one from damage.
const (
	streamFrame = 32 << 10 // the size of most payloads
	mostFrame   = 1 << 20  // bounds the memory that a forged length takes
	frameHead   = 4
)

// A StreamWriter writes a stream. Append to Buf, and call Flush now and then: it writes a frame if
// there is enough for one. Errors are kept until Close. It is not safe for concurrent use.
type StreamWriter struct {
	Buf []byte // begins with the head of the next frame
	Err error  // the first one

	to  io.Writer
	n   int64
	sum uint32
}

// NewStreamWriter returns a writer that has written a magic.
func NewStreamWriter(w io.Writer, magic string) *StreamWriter {
	if len(magic) != magicSize {
		panic("durable: a magic has 8 bytes")
	}
	s := &StreamWriter{to: w, Buf: make([]byte, frameHead, streamFrame+streamFrame/8)}
	s.write([]byte(magic))
	s.sum = Sum([]byte(magic))
	return s
}

func (w *StreamWriter) write(b []byte) {
	if w.Err == nil {
		var n int
		n, w.Err = w.to.Write(b)
		w.n += int64(n)
	}
}

// Flush writes Buf if it is long enough for a frame.
func (w *StreamWriter) Flush() {
	if len(w.Buf) >= streamFrame {
		w.frame()
	}
}

// frame writes Buf as one frame, or as several if it is long.
func (w *StreamWriter) frame() {
	for len(w.Buf) > frameHead+mostFrame {
		rest := append(make([]byte, frameHead), w.Buf[frameHead+mostFrame:]...)
		w.Buf = w.Buf[:frameHead+mostFrame]
		w.frame()
		w.Buf = rest
	}
	binary.LittleEndian.PutUint32(w.Buf, uint32(len(w.Buf)-frameHead))
	w.sum = SumOn(w.sum, w.Buf)
	w.write(binary.LittleEndian.AppendUint32(w.Buf, w.sum))
	w.Buf = w.Buf[:frameHead]
}

// Write appends b to Buf, and flushes it in between. It returns Err.
func (w *StreamWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && w.Err == nil {
		piece := b[:min(len(b), streamFrame)]
		w.Buf = append(w.Buf, piece...)
		w.Flush()
		n += len(piece)
		b = b[len(piece):]
	}
	return n, w.Err
}

// Uvarint appends a number.
func (w *StreamWriter) Uvarint(n uint64) {
	w.Buf = binary.AppendUvarint(w.Buf, n)
	w.Flush()
}

// Words appends numbers of eight bytes.
func (w *StreamWriter) Words(words ...uint64) {
	for len(words) > 0 {
		n := min(len(words), streamFrame/8)
		for _, word := range words[:n] {
			w.Buf = binary.LittleEndian.AppendUint64(w.Buf, word)
		}
		w.Flush()
		words = words[n:]
	}
}

// Close writes the last frame, and returns how many bytes were written.
func (w *StreamWriter) Close() (n int64, err error) {
	if len(w.Buf) > frameHead {
		w.frame()
	}
	w.frame()
	return w.n, w.Err
}

// A StreamReader reads a stream, and not a byte beyond its end. Nothing is returned before the
// checksum of its frame was compared. After an error it returns zeros. It is not safe for
// concurrent use.
type StreamReader struct {
	Err error // the first one

	from  io.Reader
	file  string
	at    int64 // of what is read from it next
	sum   uint32
	frame []byte // what is left of the current payload
	space []byte
	head  [frameHead]byte
	last  bool // the empty frame was read
}

// NewStreamReader returns a reader that has read a magic. Streams that begin with one of those
// before are of a version that had another form. If r has a name, as an *os.File has, it is that of
// the file in a [CorruptError].
func NewStreamReader(r io.Reader, magic string, before ...string) *StreamReader {
	s := &StreamReader{from: r}
	if f, ok := r.(interface{ Name() string }); ok {
		s.file = f.Name()
	}
	var found [magicSize]byte
	if !s.fill(found[:], 0) {
		return s
	}
	s.sum = Sum(found[:])
	if string(found[:]) == magic {
		return s
	}
	for _, old := range before {
		if strings.HasPrefix(string(found[:]), old) {
			s.refuse(magic, old)
			return s
		}
	}
	// Another version is only believed if the checksum of its first frame is right.
	if family(string(found[:])) == family(magic) && s.next() {
		s.frame, s.Err = nil, Version(s.file, string(found[:]))
	}
	s.at = 0
	s.Fail("not %q", magic)
	return s
}

// refuse sets the error for a stream that begins with the magic of a version whose form had no checksum
// there. If what follows is right for the present magic, only the magic is damaged.
func (r *StreamReader) refuse(magic, old string) {
	r.sum = Sum([]byte(magic))
	switch {
	case r.next():
		r.at = 0
		r.frame = nil
		r.Fail("not %q", magic)
	case errors.Is(r.Err, ErrCorrupt):
		r.Err = Version(r.file, old)
	}
}

// Fail records that the stream is damaged, at the byte that would be read next. If a frame is
// damaged, that is its first.
func (r *StreamReader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = Corrupt(r.file, r.Offset(), fmt.Sprintf(format, args...))
	}
	r.frame = nil
}

// Offset returns the offset of the next byte.
func (r *StreamReader) Offset() int64 {
	if len(r.frame) == 0 {
		return r.at
	}
	return r.at - SumSize - int64(len(r.frame))
}

// fill reads bytes of the piece that begins at an offset, as they are in the file.
func (r *StreamReader) fill(b []byte, begin int64) (ok bool) {
	if r.Err != nil {
		return false
	}
	n, err := io.ReadFull(r.from, b)
	r.at += int64(n)
	switch err {
	case nil:
		return true
	case io.EOF, io.ErrUnexpectedEOF:
		r.at = begin
		r.Fail("it ends too early")
	default:
		r.Err = err
	}
	return false
}

// next reads a frame.
func (r *StreamReader) next() (ok bool) {
	begin := r.at
	head := r.head[:]
	if !r.fill(head, begin) {
		return false
	}
	length := int64(binary.LittleEndian.Uint32(head))
	if length > mostFrame {
		r.at = begin
		r.Fail("a frame of %d bytes", length)
		return false
	}
	whole := int(length) + SumSize
	if whole > cap(r.space) {
		r.space = make([]byte, max(whole, streamFrame+streamFrame/8))
	}
	b := r.space[:whole]
	if !r.fill(b, begin) {
		return false
	}
	r.sum = SumOn(SumOn(r.sum, head), b[:length])
	if r.sum != binary.LittleEndian.Uint32(b[length:]) {
		r.at = begin
		r.Fail("wrong checksum")
		return false
	}
	r.frame, r.last = b[:length], length == 0
	return true
}

// More reports whether there is more to read.
func (r *StreamReader) More() bool {
	for len(r.frame) == 0 {
		if r.Err != nil || r.last || !r.next() {
			return false
		}
	}
	return true
}

// End fails unless everything was read, and returns Err.
func (r *StreamReader) End() error {
	if r.More() {
		r.Fail("something follows")
	}
	return r.Err
}

// Fill reads all of b.
func (r *StreamReader) Fill(b []byte) {
	for len(b) > 0 {
		if !r.More() {
			r.Fail("something is missing")
			clear(b)
			return
		}
		n := copy(b, r.frame)
		r.frame, b = r.frame[n:], b[n:]
	}
}

// Append reads n bytes and appends them to b. It takes memory as they arrive, so a forged length costs
// little more than the bytes that are there.
func (r *StreamReader) Append(b []byte, n int) []byte {
	for n > 0 && r.More() {
		part := r.frame[:min(n, len(r.frame))]
		r.frame, n = r.frame[len(part):], n-len(part)
		b = append(b, part...)
	}
	if n > 0 {
		r.Fail("something is missing")
	}
	return b
}

// Byte reads a byte.
func (r *StreamReader) Byte() byte {
	if len(r.frame) > 0 { // nearly always
		b := r.frame[0]
		r.frame = r.frame[1:]
		return b
	}
	var b [1]byte
	r.Fill(b[:])
	return b[0]
}

// Uint16 reads a number of two bytes.
func (r *StreamReader) Uint16() uint16 {
	var b [2]byte
	r.Fill(b[:])
	return binary.LittleEndian.Uint16(b[:])
}

// Float32 reads a number that is neither infinite nor NaN.
func (r *StreamReader) Float32() float32 {
	var b [4]byte
	r.Fill(b[:])
	v := math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
	if math.Abs(float64(v)) <= math.MaxFloat32 {
		return v
	}
	r.Fail("a number is %v", v)
	return 0
}

// Float reads a number that is neither infinite nor NaN.
func (r *StreamReader) Float() float64 {
	v := math.Float64frombits(r.Word())
	if math.Abs(v) <= math.MaxFloat64 {
		return v
	}
	r.Fail("a number is %v", v)
	return 0
}

// Word reads a number of eight bytes.
func (r *StreamReader) Word() uint64 {
	var b [8]byte
	r.Fill(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Uvarint reads a number up to most.
func (r *StreamReader) Uvarint(most uint64, what string) (v uint64) {
	for shift := 0; shift < 70; shift += 7 {
		b := r.Byte()
		if shift == 63 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if v > most {
			r.Fail("%s: %d of %d", what, v, most)
			return 0
		}
		return v
	}
	r.Fail("%s: a number without an end", what)
	return 0
}
