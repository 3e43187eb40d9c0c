package exact

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// An Entry is a URL at its first sight.
type Entry struct {
	Seq  uint64 // counts the entries of a Set from 0, for ever
	URL  string
	Data []byte // that was given to Add with it; nil if there was none
}

// These constants are on disk. Do not change them; add a version.
const (
	segmentMagic  = "SPNXNEW1"
	segmentHeader = 8 + 8 + 4 // magic, first number, checksum
	recordFrame   = 4 + 4     // size before, checksum after
)

// maxSegment is where the next batch begins a segment of its own.
const maxSegment = 64 << 20

// A segment is a file with some of the entries. Only its first bytes, up to size, count; what is
// behind them was written by a merge that did not finish.
type segment struct {
	number uint64
	first  uint64 // number of its first entry
	size   int64
}

func (s segment) name() string { return fmt.Sprintf("new-%08d", s.number) }

func (s segment) header() []byte {
	b := append(make([]byte, 0, segmentHeader), segmentMagic...)
	b = binary.LittleEndian.AppendUint64(b, s.first)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// appendRecord appends an entry as it is stored: its size, its contents as a sighting has them, and
// a checksum that includes the number, so that no entry can be taken for another.
func appendRecord(dst []byte, seq uint64, contents []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(contents)))
	dst = append(dst, contents...)
	return binary.LittleEndian.AppendUint32(dst, recordChecksum(seq, dst[start:]))
}

func recordChecksum(seq uint64, b []byte) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], seq)
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, b)
}

// appendContents appends a URL and its data, so that parseContents can tell them apart.
func appendContents(dst []byte, url string, data []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(url)))
	dst = append(dst, url...)
	return append(dst, data...)
}

func parseContents(b []byte) (url string, data []byte, ok bool) {
	n, width := binary.Uvarint(b)
	if width <= 0 || n > uint64(len(b)-width) {
		return "", nil, false
	}
	b = b[width:]
	if uint64(len(b)) > n {
		data = b[n:]
	}
	return string(b[:n]), data, true
}

// A segmentReader reads the entries of a segment in order.
type segmentReader struct {
	segment
	file  file
	at    int64 // of buf[0] in the file
	buf   []byte
	start int // of what is not yet read in buf
	seq   uint64
}

func openSegment(d disk, s segment) (*segmentReader, error) {
	f, err := d.open(s.name())
	if err != nil {
		return nil, fmt.Errorf("exact: open segment: %w", err)
	}
	r := &segmentReader{segment: s, file: f, seq: s.first}
	head, err := r.peek(segmentHeader)
	if err == nil && string(head) != string(s.header()) {
		err = &CorruptError{s.name(), 0, "wrong header"}
	}
	if err != nil {
		_ = f.Close() // the first error says more
		return nil, err
	}
	r.start += segmentHeader
	return r, nil
}

// offset returns where the next record begins.
func (r *segmentReader) offset() int64 { return r.at + int64(r.start) }

// more reports whether there is a further entry.
func (r *segmentReader) more() bool { return r.offset() < r.size }

// peek returns the next n bytes.
func (r *segmentReader) peek(n int) ([]byte, error) {
	if len(r.buf)-r.start < n {
		at := r.offset()
		if int64(n) > r.size-at {
			return nil, &CorruptError{r.name(), at, "an entry goes on behind the end"}
		}
		size := min(max(int64(n), writeSize), r.size-at)
		if int64(cap(r.buf)) < size {
			r.buf = make([]byte, size)
		}
		r.buf, r.at, r.start = r.buf[:size], at, 0
		if err := readFull(r.file, r.name(), r.buf, at); err != nil {
			return nil, err
		}
	}
	return r.buf[r.start : r.start+n], nil
}

// next returns the next entry. It does not look into entries below from, and returns them empty.
func (r *segmentReader) next(from uint64) (Entry, error) {
	at := r.offset()
	b, err := r.peek(4)
	if err != nil {
		return Entry{}, err
	}
	size := binary.LittleEndian.Uint32(b)
	if size > MaxEntry {
		return Entry{}, &CorruptError{r.name(), at, "an entry is too large"}
	}
	if b, err = r.peek(int(size) + recordFrame); err != nil {
		return Entry{}, err
	}
	seq := r.seq
	r.seq++
	r.start += len(b)
	if seq < from {
		return Entry{Seq: seq}, nil
	}
	body, sum := b[:4+size], binary.LittleEndian.Uint32(b[4+size:])
	url, data, ok := parseContents(body[4:])
	if !ok || recordChecksum(seq, body) != sum {
		return Entry{}, &CorruptError{r.name(), at, "wrong checksum"}
	}
	return Entry{seq, url, append([]byte(nil), data...)}, nil
}
