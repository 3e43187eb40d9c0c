package exact

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// An Entry is a URL that was new when it was added.
type Entry struct {
	Seq  uint64 // counts the entries of a Set from 0, and never changes
	URL  string
	Data []byte // passed to Defer; nil if there was none
}

// These constants are on disk. Do not change them; add a version.
const (
	segmentMagic  = "SPNXLOG2"
	segmentHeader = 64    // bytes before the first entry
	syncMarks     = 32    // offset of the two marks
	syncMarkSize  = 8 + 4 // size, checksum
	recordFrame   = 4 + 4 // size before, checksum after
)

// maxUvarint is the maximum number of bytes of a length below MaxEntry.
const maxUvarint = 3

// maxSegment is the size at which the log starts the next segment.
const maxSegment = 64 << 20

// A segment is a file of the log, which has the entries. Bytes beyond size are ignored.
type segment struct {
	number uint64
	first  uint64 // number of its first entry
	size   int64  // 0 in the manifest for the last segment, which grows
}

func segmentName(number uint64) string { return fmt.Sprintf("log-%08d", number) }

func (s segment) name() string { return segmentName(s.number) }

func (s segment) header() []byte {
	b := append(make([]byte, 0, segmentHeader), segmentMagic...)
	b = binary.LittleEndian.AppendUint64(b, s.first)
	b = binary.LittleEndian.AppendUint32(b, durable.Sum(b))
	return b[:segmentHeader] // without marks
}

// The log is the last segment, to which entries are appended.
type log struct {
	segment          // its size is 0
	file    vfs.File // nil before the first entry of a Set
	end     int64    // of the file, where the next entry goes
	next    uint64   // number of the next entry
	synced  int64    // bytes that are known to be on disk
	mark    int      // which of the two marks is the older one
	torn    bool     // the file may have garbage after end
	starts  []start  // about one for each startGap bytes of entries
	item    []byte   // buffers
	record  []byte
}

// A start is the position of an entry.
type start struct {
	seq uint64
	at  int64
}

const startGap = 64 << 10

// note records the start of the next entry if the last recorded one is far enough back, and reports
// whether it did.
func (l *log) note() bool {
	if n := len(l.starts); n > 0 && l.end-l.starts[n-1].at < startGap {
		return false
	}
	l.starts = append(l.starts, start{l.next, l.end})
	return true
}

// before returns the last recorded start at or before an entry.
func (l *log) before(seq uint64) start {
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i].seq > seq })
	if i == 0 {
		return start{l.first, segmentHeader}
	}
	return l.starts[i-1]
}

// append writes one entry. Once it returns nil, the entry survives the process.
func (l *log) append(url string) error {
	l.item = appendItem(l.item[:0], url, nil)
	l.record = l.appendRecord(l.record[:0], l.item)
	if _, err := l.file.WriteAt(l.record, l.end); err != nil {
		l.torn = true
		return fmt.Errorf("exact: write entry: %w", err)
	}
	if l.note() {
		l.file.Start(l.end-startGap, startGap) // makes the next sync faster
	}
	l.end += int64(len(l.record))
	l.next++
	return nil
}

// markSynced records on disk how much of the file was synced. Damage before that point is not a
// torn end. The two marks are written alternately, so that one of them is always intact. A failed
// write is ignored: it only loses this distinction.
func (l *log) markSynced(size int64) {
	l.synced = size
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, syncMarkSize), uint64(size))
	b = binary.LittleEndian.AppendUint32(b, durable.Sum(b))
	_, _ = l.file.WriteAt(b, syncMarks+int64(l.mark*syncMarkSize))
	l.mark = 1 - l.mark
}

// readMarks returns the larger of the two synced sizes, and the number of the other mark.
func readMarks(head []byte) (synced int64, older int) {
	for i := range 2 {
		b := head[syncMarks+i*syncMarkSize:][:syncMarkSize]
		size := int64(binary.LittleEndian.Uint64(b))
		if durable.Sum(b[:8]) == binary.LittleEndian.Uint32(b[8:]) && size > synced {
			synced, older = size, 1-i
		}
	}
	return synced, older
}

// appendRecord appends the next entry as it is stored: an item, and a checksum that includes the
// number, so that no entry can be mistaken for another.
func (l *log) appendRecord(dst, item []byte) []byte {
	dst = append(dst, item...)
	return binary.LittleEndian.AppendUint32(dst, recordChecksum(l.next, item))
}

func recordChecksum(seq uint64, b []byte) uint32 {
	return durable.SumOn(durable.SumNumber(0, seq), b)
}

// appendItem appends an entry without its checksum: its size and its contents. The length of the
// URL precedes it, to separate it from the data.
func appendItem(dst []byte, url string, data []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(len(url)))
	dst = append(append(dst, url...), data...)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// parseContents splits the contents of an item. It rejects a length that is encoded with more bytes
// than necessary.
func parseContents(b []byte) (url, data []byte, ok bool) {
	n, width := binary.Uvarint(b)
	if width <= 0 || width > 1 && b[width-1] == 0 || n > uint64(len(b)-width) {
		return nil, nil, false
	}
	return b[width:][:n], b[width:][n:], true
}

// A segmentReader reads the entries of a segment in order.
type segmentReader struct {
	segment
	file   vfs.File
	window window
	at     int64 // where the next entry begins
	seq    uint64
	mark   struct {
		synced int64
		older  int
	}
}

// openSegment opens a segment and checks the header. It ignores bytes beyond s.size; 0 means the
// size of the file.
func openSegment(fs vfs.FS, s segment) (*segmentReader, error) {
	f, err := fs.Open(s.name())
	if err != nil {
		return nil, fmt.Errorf("exact: open segment: %w", durable.Required(s.name(), err))
	}
	r := &segmentReader{segment: s, file: &durable.SyncedFile{File: f}, at: segmentHeader, seq: s.first}
	if err := r.open(); err != nil {
		_ = f.Close() // the first error says more
		return nil, err
	}
	return r, nil
}

func (r *segmentReader) open() error {
	head := make([]byte, segmentHeader)
	if err := readFull(r.file, r.name, head, 0); err != nil {
		return err
	}
	if string(head[:syncMarks]) != string(r.header()[:syncMarks]) {
		return durable.Corrupt(r.name(), 0, "wrong header")
	}
	r.mark.synced, r.mark.older = readMarks(head)
	size, err := r.file.Size()
	switch {
	case err != nil:
		return fmt.Errorf("exact: read %s: %w", r.name(), err)
	case r.size == 0:
		r.size = size
	case size < r.size:
		return durable.Corrupt(r.name(), size, "the file ends too early")
	}
	r.window = window{file: r.file, name: r.name, end: r.size, ahead: durable.WriteSize}
	return nil
}

// more reports whether there is another entry.
func (r *segmentReader) more() bool { return r.at < r.size }

// peek returns the next n bytes.
func (r *segmentReader) peek(n int) ([]byte, error) {
	if int64(n) > r.size-r.at {
		return nil, durable.Corrupt(r.name(), r.at, "an entry extends beyond the end")
	}
	return r.window.at(r.at, int64(n))
}

// next returns the URL and the data of the next entry, valid until the next call.
func (r *segmentReader) next() (url, data []byte, err error) {
	b, err := r.peek(4)
	if err != nil {
		return nil, nil, err
	}
	size := binary.LittleEndian.Uint32(b)
	if size > MaxEntry {
		return nil, nil, durable.Corrupt(r.name(), r.at, "an entry is too large")
	}
	if b, err = r.peek(int(size) + recordFrame); err != nil {
		return nil, nil, err
	}
	body, sum := b[:4+size], binary.LittleEndian.Uint32(b[4+size:])
	url, data, ok := parseContents(body[4:])
	if !ok || recordChecksum(r.seq, body) != sum {
		return nil, nil, durable.Corrupt(r.name(), r.at, "wrong checksum")
	}
	r.seq++
	r.at += int64(len(b))
	return url, data, nil
}

// replay passes the entries of the last segment to visit, and returns a log that continues after
// them. It stops at the first damaged entry: a crash may tear the end of a file, and nothing after
// the tear is trusted. Within the synced part, a damaged entry is corruption.
func (r *segmentReader) replay(visit func(seq uint64, url []byte) error) (l log, err error) {
	l = log{
		segment: segment{number: r.number, first: r.first}, file: r.file, next: r.first,
		end: segmentHeader, synced: r.mark.synced, mark: r.mark.older,
	}
	for r.more() {
		url, _, err := r.next()
		if errors.Is(err, ErrCorrupt) && r.at >= r.mark.synced {
			l.torn = true
			break
		}
		if err == nil {
			err = visit(l.next, url)
		}
		if err != nil {
			return log{}, err
		}
		l.note()
		l.next, l.end = r.seq, r.at
	}
	if l.end < l.synced {
		return log{}, durable.Corrupt(r.name(), l.end, "the file ends within its synced part")
	}
	return l, l.rewrite()
}

// rewrite writes what may not be on disk once more. If a sync has failed, the system may show bytes
// that it dropped, and no later sync would write them.
func (l *log) rewrite() error {
	b := make([]byte, durable.WriteSize)
	for at := max(l.synced, segmentHeader); at < l.end; at += int64(len(b)) {
		b = b[:min(l.end-at, durable.WriteSize)]
		if err := readFull(l.file, l.name, b, at); err != nil {
			return err
		}
		if _, err := l.file.WriteAt(b, at); err != nil {
			return fmt.Errorf("exact: write %s: %w", l.name(), err)
		}
	}
	return nil
}
