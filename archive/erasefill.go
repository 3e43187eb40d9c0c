package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// erasing ends the name of a file that replaces one.
const erasing = ".erasing"

// rewrite replaces a file by one with holes.
func (e *erasure) rewrite(onDisk string, holes []hole) error {
	a, name := e.archive, strings.TrimSuffix(onDisk, unfinished)
	f, err := a.openFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	fl := &filler{erasure: e, name: name}
	if fl.warcinfo, err = a.fileID(f, name, f.size); err != nil {
		return err
	}
	return durable.ReplaceWith(a.fs, onDisk, onDisk+erasing, func(out vfs.File) error {
		w := &durable.Writer{To: out}
		return errors.Join(fl.fill(w, f, holes), w.Flush())
	})
}

// filler makes the records without content for a file. They are the same whenever they are made: whether one fits
// is known when an erasure is planned. It is not safe for concurrent use.
type filler struct {
	*erasure
	name     string
	warcinfo string
	id       warc.ID // of the next record
}

// fill copies a file, with records without content in the holes.
func (e *filler) fill(w *durable.Writer, f *source, holes []hole) error {
	at := int64(0)
	for _, h := range append(holes, hole{Offset: f.size}) {
		if _, err := io.Copy(flushing{w}, io.NewSectionReader(f, at, h.Offset-at)); err != nil {
			return err
		}
		if h.Length > 0 {
			if err := e.hole(flushing{w}, f, h); err != nil {
				return err
			}
		}
		if at = h.Offset + h.Length; w.Err == nil && w.End() != at {
			return fmt.Errorf("byte %d: %w", h.Offset, errHole)
		}
	}
	return w.Err
}

// flushing bounds the buffer of a writer.
type flushing struct{ *durable.Writer }

// Write implements io.Writer.
func (f flushing) Write(p []byte) (int, error) {
	f.Writer.Write(p)
	if len(f.Buf) < durable.WriteSize {
		return len(p), f.Err
	}
	return len(p), f.Flush()
}

var errHole = errors.New("a record is too short to be replaced: compress the file anew")

// identify makes the ID of a record from that of the erasure, which is random (UUID version 8 of RFC 9562). How well
// it is compressed depends on try.
func (e *filler) identify(offset int64, try int) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", e.ID, offset, try, e.name))
	e.id = warc.ID(sum[:len(e.id)])
	e.id[6], e.id[8] = e.id[6]&0x0f|0x80, e.id[8]&0x3f|0x80
}

// header returns the header of a record that fills a hole with so many bytes.
func (e *filler) header(length int64) []byte {
	mark := e.mark()
	b := fmt.Appendf(nil, "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <%s>\r\n", e.id)
	if e.warcinfo != "" {
		b = fmt.Appendf(b, "WARC-Warcinfo-ID: <%s>\r\n", e.warcinfo)
	}
	return fmt.Appendf(b, "WARC-Date: %s\r\n%s: %s\r\nContent-Length: %012d\r\n\r\n",
		e.Time.Format("2006-01-02T15:04:05Z"), mark.Name, mark.Value, length)
}

// hole writes a record of the length of a hole, in the format of the record that begins there. Its
// block is zeros, which are stored and not compressed: so any length can be reached.
func (e *filler) hole(w io.Writer, f io.ReaderAt, h hole) error {
	e.identify(h.Offset, 0)
	var magic [4]byte
	if _, err := f.ReadAt(magic[:], h.Offset); err != nil {
		return err
	}
	frame, per, most := 0, 0, int64(1) // bytes around all, and around each stored block
	switch {
	case bytes.HasPrefix(magic[:], []byte("\x1f\x8b")):
		frame, per, most = 10+8, 5, 1<<16-1
	case string(magic[:]) == "\x28\xb5\x2f\xfd":
		frame, per, most = 4+1+1+8, 3, 128<<10
	default:
		return e.plain(w, h.Length)
	}
	room := h.Length - int64(frame)
	blocks := (room + most + int64(per) - 1) / (most + int64(per))
	size := room - blocks*int64(per)
	if size < int64(len(e.header(0))+len("\r\n\r\n")) {
		if per == 5 {
			return e.squeezed(w, h)
		}
		return errHole
	}
	s := &storing{w: w, left: size, most: most, zstd: per == 3, blocks: blocks}
	s.begin(size)
	if err := e.plain(s, size); err != nil {
		return err
	}
	return s.end()
}

// plain writes a record of so many bytes.
func (e *filler) plain(w io.Writer, size int64) error {
	n := size - int64(len(e.header(0))+len("\r\n\r\n"))
	if n < 0 {
		return errHole
	}
	_, err := w.Write(e.header(n))
	var zeros [32 << 10]byte
	for ; n > 0 && err == nil; n -= min(n, int64(len(zeros))) {
		_, err = w.Write(zeros[:min(n, int64(len(zeros)))])
	}
	if err == nil {
		_, err = io.WriteString(w, "\r\n\r\n")
	}
	return err
}

// storing writes a gzip member or a zstd frame of blocks that are not compressed. It is not safe for
// concurrent use.
type storing struct {
	w      io.Writer
	zstd   bool
	blocks int64
	left   int64 // bytes to come
	most   int64 // of a block
	room   int64 // of the current block
	sum    uint32
	size   int64
	err    error
}

func (s *storing) put(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

// begin writes the header: for zstd, a window of 1 MiB and the size (RFC 8878, section 3.1.1.1).
func (s *storing) begin(size int64) {
	if s.size = size; s.zstd {
		s.put(binary.LittleEndian.AppendUint64([]byte("\x28\xb5\x2f\xfd\xc0\x50"), uint64(size)))
		return
	}
	s.put([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
}

// Write implements io.Writer.
func (s *storing) Write(p []byte) (int, error) {
	total := len(p)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, p)
	for len(p) > 0 {
		if s.room == 0 {
			s.block()
		}
		n := min(int64(len(p)), s.room)
		s.put(p[:n])
		s.room, s.left, p = s.room-n, s.left-n, p[n:]
	}
	return total, s.err
}

// block begins a block, of which the last one may be empty.
func (s *storing) block() {
	s.room = min(s.left, s.most)
	s.blocks--
	last := byte(0)
	if s.blocks == 0 {
		last = 1
	}
	if s.zstd {
		n := uint32(s.room)<<3 | uint32(last)
		s.put([]byte{byte(n), byte(n >> 8), byte(n >> 16)})
		return
	}
	n := uint16(s.room)
	s.put([]byte{last, byte(n), byte(n >> 8), byte(^n), byte(^n >> 8)})
}

// end writes what is left.
func (s *storing) end() error {
	for s.blocks > 0 {
		s.block()
	}
	if !s.zstd {
		s.put(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, s.sum),
			uint32(s.size)))
	}
	return s.err
}

// squeezed fills a small hole in a gzip file: the record is compressed, and an extra field makes up
// for the rest.
func (e *filler) squeezed(w io.Writer, h hole) error {
	const most = 8
	z, _ := gzip.NewWriterLevel(nil, gzip.BestCompression)
	for try := range 4 * most {
		e.identify(h.Offset, try/most)
		var record, member bytes.Buffer
		size := int64(len(e.header(0))) + int64(try%most) + int64(len("\r\n\r\n"))
		_ = e.plain(&record, size)
		extra := []byte(nil)
		for range 2 { // once without the extra field, to know its size
			member.Reset()
			z.Reset(&member)
			z.Extra = extra
			_, _ = z.Write(record.Bytes()) // a buffer returns no error
			_ = z.Close()
			missing := h.Length - int64(member.Len())
			if missing == 0 {
				_, err := w.Write(member.Bytes())
				return err
			}
			if missing < 2 || extra != nil {
				break
			}
			extra = make([]byte, missing-2)
		}
	}
	return errHole
}
