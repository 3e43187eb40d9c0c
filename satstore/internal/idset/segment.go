package idset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// These constants are on disk. Do not change them; add a version.
const (
	magic       = "SATRUN2\n"
	headerSize  = 8 + 8 + 8 + disk.SumSize // magic, count, bytes of the filter, checksum
	entrySize   = KeySize + 8
	perBlock    = 682                               // entries in a block
	blockSize   = perBlock*entrySize + disk.SumSize // 16 KiB less 12 bytes
	tailPiece   = 64 << 10                          // bytes of the tail that share a checksum
	maxSegments = 1 << 20                           // in a set
)

// A segment is an immutable file of entries in order.
type segment struct {
	number uint64
	count  int64
	file   vfs.File
	firsts []Key // of each block
	filter filter
	size   int64 // of the file
}

// FileName returns the name of the file with a number.
func FileName(number uint64) string { return fmt.Sprintf("ids-%08d", number) }

func (s *segment) name() string { return FileName(s.number) }

func (s *segment) blocks() int64 { return (s.count + perBlock - 1) / perBlock }

func (s *segment) offset(block int64) int64 { return headerSize + block*blockSize }

// entries returns how many entries a block has.
func (s *segment) entries(block int64) int { return int(min(perBlock, s.count-block*perBlock)) }

// tail returns where the firsts and the filter begin.
func (s *segment) tail() int64 {
	n := s.blocks()
	if n == 0 {
		return headerSize
	}
	return s.offset(n-1) + int64(s.entries(n-1)*entrySize) + disk.SumSize
}

// blockOf returns the block that may have a key.
func (s *segment) blockOf(key Key) int64 {
	i := sort.Search(len(s.firsts), func(i int) bool { return compareKeys(s.firsts[i], key) > 0 })
	return int64(max(i-1, 0))
}

// sum includes the number of the file and the offset, so that no piece can be mistaken for another.
func (s *segment) sum(at int64, b []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:8], s.number)
	binary.LittleEndian.PutUint64(place[8:], uint64(at))
	return disk.SumOn(disk.Sum(place[:]), b)
}

// seal appends the checksum of the bytes from start on, for a write at an offset.
func (s *segment) seal(b []byte, start int, at int64) []byte {
	return binary.LittleEndian.AppendUint32(b, s.sum(at, b[start:]))
}

// unseal fills b, verifies the checksum at its end, and returns the rest.
func (s *segment) unseal(b []byte, at int64) ([]byte, error) {
	if err := disk.ReadFull(s.file, s.name(), b, at); err != nil {
		return nil, err
	}
	n := len(b) - disk.SumSize
	if s.sum(at, b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, disk.Corrupt(s.name(), at, "wrong checksum")
	}
	return b[:n], nil
}

// read returns the entries of a block. It uses b if that is large enough.
func (s *segment) read(b []byte, block int64) ([]byte, error) {
	size := s.entries(block)*entrySize + disk.SumSize
	if cap(b) < size {
		b = make([]byte, blockSize)
	}
	return s.unseal(b[:size], s.offset(block))
}

// search looks up a key in the entries of a block. If it is not there, search returns was.
func search(b []byte, key Key, was uint64) (value uint64, found bool) {
	n := len(b) / entrySize
	i := sort.Search(n, func(i int) bool {
		return bytes.Compare(b[i*entrySize:][:KeySize], key[:]) >= 0
	})
	if i == n || !bytes.Equal(b[i*entrySize:][:KeySize], key[:]) {
		return was, false
	}
	return binary.LittleEndian.Uint64(b[i*entrySize+KeySize:]), true
}

func (s *segment) header() []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.count))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.filter)))
	return s.seal(b, 0, 0)
}

// openSegment opens a file and reads the parts of it that stay in memory.
func openSegment(fs vfs.FS, number uint64) (*segment, error) {
	s := &segment{number: number}
	var err error
	if s.file, err = fs.Open(s.name()); err != nil {
		return nil, fmt.Errorf("satstore: open ids: %w", err)
	}
	if err := s.readTail(); err != nil {
		_ = s.file.Close() // the first error says more
		return nil, err
	}
	return s, nil
}

func (s *segment) readTail() error {
	head, err := s.unseal(make([]byte, headerSize), 0)
	if err != nil {
		return err
	}
	s.count = int64(binary.LittleEndian.Uint64(head[8:]))
	size := int64(binary.LittleEndian.Uint64(head[16:]))
	whole, err := s.file.Size()
	if err != nil {
		return fmt.Errorf("satstore: read ids: %w", err)
	}
	s.size = whole
	fits := s.count > 0 && s.count <= whole/entrySize && size > 0 && size <= whole
	if string(head[:8]) != magic || !fits || size%filterLine != 0 {
		return disk.Corrupt(s.name(), 0, "not an index of ids, or of another version")
	}
	tail := make([]byte, 0, s.blocks()*KeySize+size)
	piece := make([]byte, tailPiece+disk.SumSize)
	for at := s.tail(); len(tail) < cap(tail); {
		n := min(tailPiece, cap(tail)-len(tail))
		b, err := s.unseal(piece[:n+disk.SumSize], at)
		if err != nil {
			return err
		}
		tail = append(tail, b...)
		at += int64(n + disk.SumSize)
	}
	s.firsts = make([]Key, s.blocks())
	for i := range s.firsts {
		copy(s.firsts[i][:], tail)
		tail = tail[KeySize:]
	}
	s.filter = filter(bytes.Clone(tail)) // so that the memory before it is freed
	return nil
}

// A segmentWriter writes a segment. Entries must come in order.
type segmentWriter struct {
	*segment
	fs    vfs.FS
	buf   []byte
	start int // of the open block in buf
	left  int // entries that still fit in it
	end   int64
	err   error
}

// createSegment begins a segment with up to most entries.
func createSegment(fs vfs.FS, number uint64, most int64) (*segmentWriter, error) {
	bits := int64(smallBits)
	if most >= segmentEntries {
		bits = largeBits
	}
	s := &segment{number: number, filter: newFilter(most, bits)}
	var err error
	if s.file, err = fs.Create(s.name()); err != nil {
		return nil, fmt.Errorf("satstore: create ids: %w", err)
	}
	return &segmentWriter{segment: s, fs: fs, end: headerSize}, nil
}

func (w *segmentWriter) add(key Key, value uint64) {
	if w.left == 0 {
		w.closeBlock()
		w.firsts = append(w.firsts, key)
		w.start, w.left = len(w.buf), perBlock
	}
	w.filter.add(key)
	w.buf = append(w.buf, key[:]...)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, value)
	w.left--
	w.count++
}

// writeSize is the size of a write.
const writeSize = 256 << 10

func (w *segmentWriter) closeBlock() {
	if len(w.buf) > w.start {
		w.buf = w.seal(w.buf, w.start, w.end+int64(w.start))
		w.start = len(w.buf)
	}
	if len(w.buf) >= writeSize {
		w.flush()
	}
}

func (w *segmentWriter) flush() {
	if w.err == nil {
		_, w.err = w.file.WriteAt(w.buf, w.end)
		w.file.Start(w.end, int64(len(w.buf)))
	}
	w.end += int64(len(w.buf))
	w.buf, w.start = w.buf[:0], 0
}

// finish writes the rest and syncs the file. After an error the file is removed.
func (w *segmentWriter) finish() (*segment, error) {
	w.closeBlock()
	w.flush()
	tail := make([]byte, 0, len(w.firsts)*KeySize+len(w.filter))
	for _, first := range w.firsts {
		tail = append(tail, first[:]...)
	}
	tail = append(tail, w.filter...)
	for len(tail) > 0 {
		n := min(tailPiece, len(tail))
		w.buf = w.seal(append(w.buf, tail[:n]...), 0, w.end)
		w.flush()
		tail = tail[n:]
	}
	if w.size = w.end; w.err == nil {
		_, w.err = w.file.WriteAt(w.header(), 0)
	}
	if w.err == nil {
		w.err = w.file.Sync()
	}
	if w.err != nil {
		// Each attempt has a new name. On a full disk, a failed attempt must not leave a file that
		// takes the space of the next.
		durable.Discard(w.fs, w.name(), w.file)
		return nil, fmt.Errorf("satstore: write ids: %w", w.err)
	}
	return w.segment, nil
}
