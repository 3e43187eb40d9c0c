package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A segment is an immutable file of entries in order. Its methods are safe for concurrent use.
type segment struct {
	table  *Table
	number uint64
	name   string
	file   vfs.File
	size   int64
	count  int64
	data   int64    // end of the data blocks
	first  []byte   // key
	tops   []top    // of the leaves
	leaves [][]byte // nil if they are not in memory
	filter filter   // nil if it is not in memory
	memory int64    // of leaves and filter
	refs   atomic.Int64
	doomed atomic.Bool // remove the file with the last reference
}

// A top is where a leaf begins.
type top struct {
	first []byte
	place
}

// A place is where a part of a file is, without its checksum.
type place struct {
	at   int64
	size int
}

// end is the offset of the next part.
func (p place) end() int64 { return p.at + int64(p.size) + durable.SumSize }

// Sizes. Those of the footer are on disk. Do not change them; add a version.
const (
	magic      = "SPNRUN3\n"
	footerSize = 8 + 8 + 8 + 8 + 8 + 4 + 4 + durable.SumSize
	maxBlock   = 1 << 24 // of a part other than the filter
)

// leafSize is the size of a full leaf, at least. Tests change it.
var leafSize = 4 << 10

// A footer is the end of a file.
type footer struct{ count, data, top, filter int64 }

func (f footer) append(b []byte, key, value int) []byte {
	b = append(b, magic...)
	for _, n := range []int64{f.count, f.data, f.top, f.filter} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(key))
	return binary.LittleEndian.AppendUint32(b, uint32(value))
}

// before reports whether all of s may be before another segment.
func (s *segment) before(next *segment) bool {
	return bytes.Compare(s.tops[len(s.tops)-1].first, next.first) < 0
}

func (s *segment) corrupt(at int64, reason string) error {
	return durable.Corrupt(s.name, at, reason)
}

func (s *segment) sum(at int64, b []byte) uint32 { return durable.SumAt(s.number, at, b) }

// read fills b, which includes the checksum at its end, and verifies it.
func (s *segment) read(b []byte, at int64) ([]byte, error) {
	if err := durable.ReadFull(s.file, s.name, b, at); err != nil {
		return nil, err
	}
	return s.verify(b, at)
}

func (s *segment) verify(b []byte, at int64) ([]byte, error) {
	n := len(b) - durable.SumSize
	if s.sum(at, b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, s.corrupt(at, "wrong checksum")
	}
	return b[:n], nil
}

// openSegment opens a file and reads the parts of it that stay in memory.
func (t *Table) openSegment(number uint64) (*segment, error) {
	s := &segment{table: t, number: number, name: t.fileName(number)}
	var err error
	if s.file, err = t.fs.Open(s.name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, s.corrupt(0, "the file is missing")
		}
		return nil, fmt.Errorf("open %s: %w", s.name, err)
	}
	if err := s.load(); err != nil {
		_ = s.file.Close() // the first error says more
		return nil, err
	}
	return s, nil
}

// load reads what is needed to search the file.
func (s *segment) load() error {
	err := s.loadIndex()
	if err != nil {
		s.table.used.Add(-s.memory)
	}
	return err
}

// loadIndex reads the footer, the index and the filter.
func (s *segment) loadIndex() (err error) {
	if s.size, err = s.file.Size(); err != nil {
		return fmt.Errorf("read %s: %w", s.name, err)
	}
	at := s.size - footerSize
	if at < 0 {
		return s.corrupt(0, "the file ends too early")
	}
	b, err := s.read(make([]byte, footerSize), at)
	if err != nil {
		return err
	}
	number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8+8*i:])) }
	f := footer{number(0), number(1), number(2), number(3)}
	filterSize := at - f.filter - durable.SumSize
	if !bytes.Equal(b, f.append(nil, s.table.Key, s.table.Value)) || f.count <= 0 || f.data <= 0 ||
		f.top < f.data || f.top > f.filter-durable.SumSize || filterSize <= 0 ||
		filterSize%filterLine > 0 {
		return s.corrupt(at, "not the end of a table")
	}
	s.count, s.data = f.count, f.data
	if b, err = s.read(make([]byte, f.filter-f.top), f.top); err != nil {
		return err
	}
	if !s.loadTops(b, f.data, f.top) {
		return s.corrupt(f.top, "an invalid index")
	}
	s.first = s.tops[0].first
	return s.loadMemory(f, filterSize)
}

// loadTops parses the list of leaves, which are between two offsets.
func (s *segment) loadTops(b []byte, from, to int64) bool {
	var e entries
	memory := 0
	for e.openVariable(b); e.step(); {
		p, ok := placeOf(e.value)
		if !ok || p.at != from || p.end() > to {
			return false
		}
		// Keys share prefixes, but those of 16 entries share no more than a full key.
		if memory += len(e.key); memory > restartEvery*len(b) {
			return false
		}
		from = p.end()
		s.tops = append(s.tops, top{bytes.Clone(e.key), p})
	}
	return !e.bad && len(s.tops) > 0 && from == to
}

// placeOf parses a value of the index.
func placeOf(b []byte) (p place, ok bool) {
	at, n := binary.Uvarint(b)
	if n <= 0 || at > 1<<60 {
		return p, false
	}
	size, m := binary.Uvarint(b[n:])
	return place{int64(at), int(size)}, m > 0 && n+m == len(b) && size <= maxBlock
}

// loadMemory reads the leaves and the filter, if the memory of the table has room for them.
func (s *segment) loadMemory(f footer, filterSize int64) error {
	if s.table.reserve(s, f.top-f.data) {
		all := make([]byte, f.top-f.data)
		if err := durable.ReadFull(s.file, s.name, all, f.data); err != nil {
			return err
		}
		s.leaves = make([][]byte, len(s.tops))
		for i, t := range s.tops {
			b, err := s.verify(all[t.at-f.data:t.end()-f.data], t.at)
			if err != nil {
				return err
			}
			s.leaves[i] = b
		}
	}
	if !s.table.reserve(s, filterSize) {
		return nil
	}
	b, err := s.read(make([]byte, filterSize+durable.SumSize), f.filter)
	s.filter = filter(b)
	return err
}

// reserve takes a part of the table's memory for a segment, if there is enough.
func (t *Table) reserve(s *segment, n int64) bool {
	if t.used.Add(n) > t.Memory && t.Memory > 0 {
		t.used.Add(-n)
		return false
	}
	s.memory += n
	return true
}

// release drops a reference. The last one closes the file, and removes it if it is doomed.
func (s *segment) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	s.table.used.Add(-s.memory)
	_ = s.file.Close() // it was only read
	if s.doomed.Load() {
		_ = s.table.fs.Remove(s.name) // no state names it, so it does no harm
	}
}

// leaf returns the leaf at an index. It uses b if it has to be read.
func (s *segment) leaf(i int, b []byte) ([]byte, error) {
	if s.leaves != nil {
		return s.leaves[i], nil
	}
	n := s.tops[i].size + durable.SumSize
	return s.read(slices.Grow(b[:0], n)[:n], s.tops[i].at)
}

// A probe is the memory of a look-up, for reuse.
type probe struct {
	index []byte
	data  []byte
	leaf  entries
	entries
	last      Pair
	at        int // of the leaf
	following []byte
}

var probes = sync.Pool{New: func() any { return new(probe) }}

// locate finds the last block whose first key is below key, or else the first block. If equal is
// set, the first key may be key itself. p.following is then the first key of the block after it, or
// nil after the last one.
func (s *segment) locate(p *probe, key []byte, equal bool) (at place, err error) {
	p.at = max(lastBelow(len(s.tops), func(i int) []byte { return s.tops[i].first }, key, equal), 0)
	b, err := s.leaf(p.at, p.index)
	if err != nil {
		return at, err
	}
	if s.leaves == nil {
		p.index = b
	}
	p.leaf.openVariable(b)
	p.last.clear()
	found := p.leaf.seek(key, &p.last)
	value := p.last.Value
	if found && (len(p.last.Key) == 0 || equal && bytes.Equal(p.leaf.key, key)) {
		value = p.leaf.value
		found = p.leaf.step()
	}
	at, ok := placeOf(value)
	if p.leaf.bad || !ok || at.end() > s.data {
		return at, s.corrupt(s.tops[p.at].at, "an invalid index")
	}
	p.following = nil
	if found {
		p.following = p.leaf.key
	} else if p.at+1 < len(s.tops) {
		p.following = s.tops[p.at+1].first
	}
	return at, nil
}

// open reads a block.
func (p *probe) open(s *segment, at place) error {
	n := at.size + durable.SumSize
	p.data = slices.Grow(p.data[:0], n)[:n]
	b, err := s.read(p.data, at.at)
	if err != nil {
		return err
	}
	p.entries.open(&s.table.Options, b)
	return nil
}
