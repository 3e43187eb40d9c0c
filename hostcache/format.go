package hostcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// These constants are on disk, as FORMAT.md describes. Do not change them; add a version.
const (
	fileMagic   = "SPHC"
	fileVersion = 1

	headerSize      = 24
	blockHeaderSize = 12
	totalSize       = 8

	// flagsOnDisk are the flags of a meta that a file may have.
	flagsOnDisk = negativeFlag | creditMask<<worthShift

	kindRawLittle = 0
	kindRawBig    = 1
	kindCodec     = 2

	// maxBlock bounds what a reader has to hold at once.
	maxBlock = 64 << 20
)

// blockSize is how much a block holds, roughly: a checksum costs little, and what a torn file loses
// is not the matter, as it is refused.
const blockSize = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A record is an entry in a snapshot.
type record struct {
	key     []byte // labels in reverse order
	flags   byte   // worth and negative, as in a meta, without credit
	expires int64  // milliseconds of Unix time; 0 if never
	value   []byte
}

// A fileHeader says how to read the values of a snapshot.
type fileHeader struct {
	kind  byte
	width uint32 // of a raw value
	saved int64  // milliseconds of Unix time; other times count from here
}

// An encoder writes a snapshot.
type encoder struct {
	w       io.Writer
	header  fileHeader
	payload []byte // of the block that is being filled
	count   uint32 // entries in it
	last    []byte // key
	total   uint64
}

func newEncoder(w io.Writer, h fileHeader) (*encoder, error) {
	b := make([]byte, 0, headerSize)
	b = append(b, fileMagic...)
	b = le.AppendUint16(b, fileVersion)
	b = append(b, h.kind, 0)
	b = le.AppendUint32(b, h.width)
	b = le.AppendUint64(b, uint64(h.saved))
	b = le.AppendUint32(b, crc32.Checksum(b, castagnoli))
	_, err := w.Write(b)
	return &encoder{w: w, header: h}, err
}

// add requires that keys come in ascending order.
func (e *encoder) add(r record) error {
	if len(r.key)+len(r.value) > maxBlock/2 {
		return fmt.Errorf("hostcache: %d bytes are too many for an entry", len(r.key)+len(r.value))
	}
	shared := 0
	if e.count > 0 {
		shared = commonPrefix(e.last, r.key)
	}
	b := binary.AppendUvarint(e.payload, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(r.key)-shared))
	b = append(b, r.key[shared:]...)
	b = append(b, r.flags)
	left := uint64(0)
	if r.expires != 0 {
		left = uint64(max(r.expires-e.header.saved, 0)) + 1
	}
	b = binary.AppendUvarint(b, left)
	if e.header.kind == kindCodec {
		b = binary.AppendUvarint(b, uint64(len(r.value)))
	}
	e.payload = append(b, r.value...)
	e.last = append(e.last[:0], r.key...)
	e.count++
	e.total++
	if len(e.payload) >= blockSize {
		return e.flush()
	}
	return nil
}

func (e *encoder) flush() error {
	var b [blockHeaderSize]byte
	le.PutUint32(b[:], uint32(len(e.payload)))
	le.PutUint32(b[4:], e.count)
	le.PutUint32(b[8:], blockSum(b[:8], e.payload))
	_, err1 := e.w.Write(b[:])
	_, err2 := e.w.Write(e.payload)
	e.payload, e.count = e.payload[:0], 0
	return errors.Join(err1, err2)
}

// close writes what is left, and the block of no entries that says that this was all.
func (e *encoder) close() error {
	if e.count > 0 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.payload = le.AppendUint64(e.payload, e.total)
	return e.flush()
}

func blockSum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, payload)
}

// A decoder reads a snapshot. Its errors have an offset, and no file yet.
type decoder struct {
	r       io.Reader
	header  fileHeader
	offset  int64 // of what is read next
	payload []byte
	last    []byte // key
	key     []byte // that is being put together
	total   uint64
}

func (d *decoder) corrupt(at int64, format string, args ...any) error {
	return &CorruptError{Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// read fills b, of which the file has to have all.
func (d *decoder) read(b []byte, what string) error {
	n, err := io.ReadFull(d.r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return d.corrupt(d.offset+int64(n), "the file ends within %s", what)
	}
	d.offset += int64(n)
	return err
}

func newDecoder(r io.Reader) (*decoder, error) {
	d := &decoder{r: r}
	b := make([]byte, headerSize)
	if err := d.read(b, "the header"); err != nil {
		return nil, err
	}
	switch {
	case string(b[:4]) != fileMagic:
		return nil, d.corrupt(0, "no snapshot of a cache")
	case le.Uint32(b[headerSize-4:]) != crc32.Checksum(b[:headerSize-4], castagnoli):
		return nil, d.corrupt(headerSize-4, "wrong checksum of the header")
	case le.Uint16(b[4:]) != fileVersion:
		return nil, d.corrupt(4, "version %d is not known", le.Uint16(b[4:]))
	case b[6] > kindCodec || b[7] != 0:
		return nil, d.corrupt(6, "unknown kind of values")
	}
	d.header = fileHeader{b[6], le.Uint32(b[8:]), int64(le.Uint64(b[12:]))}
	return d, nil
}

// all calls take with each entry. What a record refers to is good until take returns.
func (d *decoder) all(take func(record) error) error {
	for {
		begin := d.offset
		count, err := d.block()
		if err != nil {
			return err
		}
		if count == 0 {
			return d.end(begin)
		}
		if err := d.entries(begin+blockHeaderSize, count, take); err != nil {
			return err
		}
	}
}

// block reads the next block into the payload, and returns how many entries it has.
func (d *decoder) block() (count uint32, err error) {
	begin := d.offset
	var b [blockHeaderSize]byte
	if err := d.read(b[:], "a block's header"); err != nil {
		return 0, err
	}
	length := le.Uint32(b[:])
	if length > maxBlock {
		return 0, d.corrupt(begin, "a block of %d bytes is too long", length)
	}
	if int(length) > cap(d.payload) {
		d.payload = make([]byte, length)
	}
	d.payload = d.payload[:length]
	if err := d.read(d.payload, "a block"); err != nil {
		return 0, err
	}
	if le.Uint32(b[8:]) != blockSum(b[:8], d.payload) {
		return 0, d.corrupt(begin, "wrong checksum of a block")
	}
	return le.Uint32(b[4:]), nil
}

// end checks the last block, and that nothing follows.
func (d *decoder) end(begin int64) error {
	if len(d.payload) != totalSize {
		return d.corrupt(begin, "the last block has %d bytes", len(d.payload))
	}
	if total := le.Uint64(d.payload); total != d.total {
		return d.corrupt(begin, "%d entries were written, %d are here", total, d.total)
	}
	switch _, err := io.ReadFull(d.r, make([]byte, 1)); err {
	case io.EOF:
		return nil
	case nil:
		return d.corrupt(d.offset, "something follows the end")
	default:
		return err
	}
}

// entries parses a payload that begins at an offset.
func (d *decoder) entries(at int64, count uint32, take func(record) error) error {
	rest := d.payload
	for i := range count {
		here := at + int64(len(d.payload)-len(rest))
		p := parser{rest: rest}
		r := d.entry(&p, i == 0)
		switch {
		case p.bad:
			return d.corrupt(here, "an entry makes no sense")
		case d.total > 0 && string(r.key) <= string(d.last):
			return d.corrupt(here, "the keys are not in order")
		}
		if err := take(r); err != nil {
			return err
		}
		rest = p.rest
		d.last = append(d.last[:0], r.key...)
		d.total++
	}
	if len(rest) > 0 {
		return d.corrupt(at+int64(len(d.payload)-len(rest)), "something follows a block's entries")
	}
	return nil
}

func (d *decoder) entry(p *parser, first bool) record {
	shared := p.uvarint()
	if shared > uint64(len(d.last)) || first && shared > 0 {
		p.bad = true
		return record{}
	}
	d.key = append(append(d.key[:0], d.last[:shared]...), p.bytes(p.uvarint())...)
	r := record{key: d.key, flags: p.byte()}
	// A use makes the credit one more than the worth, and has three bits for it.
	p.bad = p.bad || r.flags&^flagsOnDisk != 0 || r.flags>>worthShift&creditMask > maxWorth
	if left := p.uvarint(); left > math.MaxInt64 {
		p.bad = true
	} else if left > 0 {
		r.expires = addClamped(d.header.saved, int64(left)-1)
	}
	length := uint64(d.header.width)
	if d.header.kind == kindCodec {
		length = p.uvarint()
	}
	r.value = p.bytes(length)
	return r
}

// addClamped adds without an overflow. It requires that b is not negative.
func addClamped(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// A parser takes a payload apart. After a mistake it is bad, and yields zeros.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) bytes(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte {
	if b := p.bytes(1); b != nil {
		return b[0]
	}
	return 0
}
