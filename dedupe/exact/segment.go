package exact

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
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

// maxUvarint is the bytes of a length below MaxEntry.
const maxUvarint = 3

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

// appendRecord appends an entry as it is stored: its size and its contents, which are an item of the
// pile, and a checksum that includes the number, so that no entry can be taken for another.
func appendRecord(dst []byte, seq uint64, item []byte) []byte {
	dst = append(dst, item...)
	return binary.LittleEndian.AppendUint32(dst, recordChecksum(seq, item))
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

// parseContents undoes appendContents. It takes no length that is written with more bytes than it
// needs.
func parseContents(b []byte) (url string, data []byte, ok bool) {
	n, width := binary.Uvarint(b)
	if width <= 0 || width > 1 && b[width-1] == 0 || n > uint64(len(b)-width) {
		return "", nil, false
	}
	b = b[width:]
	if uint64(len(b)) > n {
		data = b[n:]
	}
	return string(b[:n]), data, true
}

// A mark says where in a segment an entry begins.
type mark struct {
	seq uint64
	at  int64
}

// marks are where the batches of one segment begin. A caller who asks after each merge for what is
// new finds it by them, without a walk through all that came before. They are kept in memory alone,
// and only for the last segment.
type marks struct {
	segment uint64 // its number
	all     []mark
}

// maxMarks bounds them. Half of more are as good, at twice the way to the entry.
const maxMarks = 1024

// add takes a mark behind all others of its segment.
func (m *marks) add(segment uint64, added mark) {
	if segment != m.segment {
		m.segment, m.all = segment, nil
	}
	if len(m.all) == maxMarks {
		for i := range maxMarks / 2 {
			m.all[i] = m.all[2*i]
		}
		m.all = m.all[:maxMarks/2]
	}
	m.all = append(m.all, added)
}

// before returns the last mark of a segment that does not lie behind an entry.
func (m *marks) before(s segment, seq uint64) mark {
	start := mark{s.first, segmentHeader}
	if s.number != m.segment {
		return start
	}
	i := sort.Search(len(m.all), func(i int) bool { return m.all[i].seq > seq })
	if i == 0 {
		return start
	}
	return m.all[i-1]
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

// openSegment checks the header. What lies behind s.size is not looked at.
func openSegment(d disk, s segment) (*segmentReader, error) {
	f, err := d.open(s.name())
	if err != nil {
		return nil, fmt.Errorf("exact: open segment: %w", err)
	}
	head := make([]byte, segmentHeader)
	err = readFull(f, s.name(), head, 0)
	if err == nil && string(head) != string(s.header()) {
		err = &CorruptError{s.name(), 0, "wrong header"}
	}
	if err != nil {
		_ = f.Close() // the first error says more
		return nil, err
	}
	return &segmentReader{segment: s, file: f, at: segmentHeader, seq: s.first}, nil
}

// skip goes to a mark of the segment before anything is read.
func (r *segmentReader) skip(to mark) { r.at, r.seq = to.at, to.seq }

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
