package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// filler makes the records without content for a file. They are the same whenever they are made: whether one fits
// is known when an erasure is planned. It is not safe for concurrent use.
type filler struct {
	*erasure
	name     string
	warcinfo string       // the ID of a file of ours, or "" if no record has it
	id       warc.ID      // of the next record
	zip      *gzip.Writer // of large holes
}

func (e *erasure) filler(f io.ReaderAt, name string, size int64) (*filler, error) {
	r, err := e.archive.reader(name)
	if err != nil {
		return nil, err
	}
	defer r.close()
	id, err := identity(r, f, name, size)
	if len(id) > longestID { // it is not one of ours, and a filler must fit everywhere
		id = ""
	}
	return &filler{erasure: e, name: name, warcinfo: id}, err
}

// longestID is the length of the longest ID of a file that fillers repeat.
const longestID = 100

var errHole = errors.New("a record is too short to be replaced: compress the file anew")

// maxFiller bounds a record without content. It is a single block that is not compressed, so any length can
// be reached. A larger hole gets several.
const maxFiller = 63 << 10

// hole writes records of the length of a hole, in the format of the record that begins there.
func (e *filler) hole(w io.Writer, f io.ReaderAt, h hole) error {
	var magic [4]byte
	if _, err := f.ReadAt(magic[:], h.Offset); err != nil {
		return err
	}
	for at, end := h.Offset, h.Offset+h.Length; at < end; {
		part := hole{at, end - at}
		if part.Length > maxFiller {
			part.Length = maxFiller - 1<<10 // the last one needs room, too
		}
		member := e.member(magic[:], part)
		if member == nil {
			return errHole
		}
		if _, err := w.Write(member); err != nil {
			return err
		}
		at += part.Length
	}
	return nil
}

// member returns a record that fills a hole, or nil if none fits.
func (e *filler) member(magic []byte, h hole) []byte {
	const around = 6 + 8 + 3 // a block of zstd
	e.identify(h.Offset, 0)
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return e.squeezed(h)
	case string(magic) == "\x28\xb5\x2f\xfd": // a window of 1 MiB, and the size (RFC 8878, section 3.1.1.1)
		record := e.record(h.Length - around)
		if record == nil {
			return nil
		}
		n := uint32(len(record))
		b := binary.LittleEndian.AppendUint64([]byte("\x28\xb5\x2f\xfd\xc0\x50"), uint64(n))
		block := n<<3 | 1 // not compressed, and the last one
		return append(append(b, byte(block), byte(block>>8), byte(block>>16)), record...)
	}
	return e.record(h.Length)
}

// identify makes the ID of a record from that of the erasure, which is random (UUID version 8 of RFC 9562). How well
// it is compressed depends on try.
func (e *filler) identify(offset int64, try int) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", e.ID, offset, try, e.name))
	e.id = warc.ID(sum[:len(e.id)])
	e.id[6], e.id[8] = e.id[6]&0x0f|0x80, e.id[8]&0x3f|0x80
}

// header returns the header of a record with so many zeros.
func (e *filler) header(zeros int64) []byte {
	mark := e.mark()
	b := fmt.Appendf(nil, "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <%s>\r\n", e.id)
	if e.warcinfo != "" {
		b = fmt.Appendf(b, "WARC-Warcinfo-ID: <%s>\r\n", e.warcinfo)
	}
	return fmt.Appendf(b, "WARC-Date: %s\r\n%s: %s\r\nContent-Length: %012d\r\n\r\n",
		e.Time.Format("2006-01-02T15:04:05Z"), mark.Name, mark.Value, zeros)
}

// recordEnd follows the block of a record.
const recordEnd = "\r\n\r\n"

// record returns a record of so many bytes, or nil if none is that short.
func (e *filler) record(size int64) []byte {
	zeros := size - int64(len(e.header(0))+len(recordEnd))
	if zeros < 0 {
		return nil
	}
	return append(append(e.header(zeros), make([]byte, zeros)...), recordEnd...)
}

// squeezed fills a small hole in a gzip file: the record is compressed, and an extra field makes up for the
// rest. That takes two bytes or more, so a few lengths are tried.
func (e *filler) squeezed(h hole) []byte {
	const lengths = 8
	z := e.zip
	if z == nil || h.Length < 1<<10 { // a small one is planned: its length must not depend on what was written before
		z, _ = gzip.NewWriterLevel(nil, gzip.BestCompression)
		e.zip = z
	}
	member := func(record, extra []byte) []byte {
		var b bytes.Buffer
		z.Reset(&b)
		z.Extra = extra
		_, _ = z.Write(record) // a buffer returns no error
		_ = z.Close()
		return b.Bytes()
	}
	for try := range 4 * lengths {
		e.identify(h.Offset, try/lengths)
		record := e.record(int64(len(e.header(0)) + try%lengths + len(recordEnd)))
		plain := member(record, nil)
		switch missing := h.Length - int64(len(plain)); {
		case missing == 0:
			return plain
		case missing >= 2:
			extra := make([]byte, missing-2)
			if len(extra) >= 4 { // a subfield (RFC 1952, section 2.3.1.1)
				binary.LittleEndian.PutUint16(extra[copy(extra, "SE"):], uint16(len(extra)-4))
			}
			return member(record, extra)
		}
	}
	return nil
}
