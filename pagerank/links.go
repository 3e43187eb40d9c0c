package pagerank

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"
)

type spill = interface {
	io.ReaderAt
	io.WriterAt
}

// linkStore keeps lists of ids in an append-only arena. A list is sorted and packed: its length,
// the distance of the first id from the page's own, and the distance of each other id from the
// previous one. Most links lead to ids close by or close to each other, and take a byte.
//
// The arena consists of slabs. A list never crosses a slab boundary, except that a long one starts
// a run of slabs that are contiguous in memory.
type linkStore struct {
	slabs [][]byte // each extends to the end of its run; nil if it is in the spill
	run   int      // first slab of the last run
	spill spill
	end   uint64 // where the next list goes
	waste uint64 // bytes of lists that were replaced
	size  int    // number of links, without waste
	last  uint32 // the highest id of all
	out   []byte // scratch for a list to be written
	in    []byte // scratch for a list read from the spill
	err   error  // the first error of the spill, or ErrFull
}

const (
	slabBytes = 1 << 16
	align     = 2 // lets 32 bits address 8 GiB
	firstRead = 64
)

// A place is the offset of a list, in units of align, from 1 on; 0 means none.
type place uint32

// put stores the sorted list of a page, which must not have duplicates. It returns 0 if it cannot.
func (s *linkStore) put(page uint32, ids []uint32) place {
	if s.err != nil {
		return 0 // a slab is lost, or places have run out
	}
	s.out = encode(s.out[:0], page, ids)
	if room := uint64(len(s.slabs))*slabBytes - s.end; uint64(len(s.out)) > room && !s.open(len(s.out)) {
		return 0
	}
	at := place(s.end/align + 1)
	copy(s.slabs[s.end/slabBytes][s.end%slabBytes:], s.out)
	s.end += uint64(len(s.out))
	s.size += len(ids)
	if len(ids) > 0 {
		s.last = max(s.last, ids[len(ids)-1])
	}
	return at
}

// encode appends the list of a page to b, which is empty, and pads it to align.
func encode(b []byte, page uint32, ids []uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	if len(ids) > 0 {
		off := int64(ids[0]) - int64(page)
		b = binary.AppendUvarint(b, uint64(off<<1^off>>63)) // the sign goes last
		for i, id := range ids[1:] {
			if gap := id - ids[i] - 1; gap < 0x80 {
				b = append(b, byte(gap))
			} else {
				b = binary.AppendUvarint(b, uint64(gap))
			}
		}
	}
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// open starts a run of slabs for n bytes. If there is a spill, the previous run is written to it.
func (s *linkStore) open(n int) bool {
	count := (n + slabBytes - 1) / slabBytes
	start := uint64(len(s.slabs)) * slabBytes
	if start+uint64(count)*slabBytes > (1<<32-1)*align {
		s.err = ErrFull
		return false
	}
	var memory []byte
	if s.spill != nil && len(s.slabs) > 0 {
		memory = s.slabs[s.run]
		if _, err := s.spill.WriteAt(memory, int64(s.run)*slabBytes); err != nil {
			s.err = fmt.Errorf("pagerank: write links: %w", err)
			return false
		}
		clear(s.slabs[s.run:])
	}
	if len(memory) != count*slabBytes { // otherwise it is written over
		memory = make([]byte, count*slabBytes)
	}
	s.run, s.end = len(s.slabs), start
	for i := range count {
		s.slabs = append(s.slabs, memory[i*slabBytes:])
	}
	return true
}

// read appends the list of a page to ids. A list that cannot be read is empty.
func (s *linkStore) read(at place, page uint32, ids []uint32) []uint32 {
	if at == 0 {
		return ids
	}
	count, b := s.list(at)
	if count == 0 {
		return ids
	}
	start := len(ids)
	ids = slices.Grow(ids, count)[:start+count]
	if !decode(b, page, ids[start:], s.last) {
		s.fail(errSpill)
		return ids[:start]
	}
	return ids
}

// decode reverses encode, without the length. It fills ids and reports whether they are valid:
// ascending, and at most last.
func decode(b []byte, page uint32, ids []uint32, last uint32) bool {
	first, n := binary.Uvarint(b)
	next := int64(page) + (int64(first>>1) ^ -int64(first&1))
	if n <= 0 || first>>34 != 0 || next < 0 {
		return false
	}
	b = b[n:]
	ids[0] = uint32(next)
	at := 0
	for i := range ids[1:] {
		if at >= len(b) {
			return false
		}
		gap := uint64(b[at])
		at++
		if gap >= 0x80 { // rare: most gaps take a byte, for which calling Uvarint costs more
			if gap, n = binary.Uvarint(b[at-1:]); n <= 0 || gap>>32 != 0 {
				return false
			}
			at += n - 1
		}
		next += int64(gap) + 1
		ids[1+i] = uint32(next)
	}
	return next <= int64(last)
}

// errSpill means that a spill returned other bytes than were written.
var errSpill = errors.New("pagerank: read links: not what was written")

func (s *linkStore) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// list returns how many ids the list at a place has, and the bytes after that number, perhaps more
// than the list's. They are valid until the next call.
func (s *linkStore) list(at place) (count int, b []byte) {
	from := uint64(at-1) * align
	b = s.view(from, firstRead)
	// A list with more links than there are ids is corrupt, and would cost memory.
	c, n := binary.Uvarint(b)
	if n <= 0 || c > uint64(s.last)+1 {
		if b != nil {
			s.fail(errSpill)
		}
		return 0, nil
	}
	// The length in bytes is not kept: it would take a byte. In memory all bytes are available;
	// from a spill a longer piece is read if the first one has too few numbers.
	if most := n + int(c)*binary.MaxVarintLen32; len(b) < most && span(b[n:], int(c)) < 0 {
		b = s.view(from, most)
	}
	return int(c), b[min(n, len(b)):]
}

// span returns the length of n numbers in bytes, or -1 if there are fewer.
func span(b []byte, numbers int) int {
	for i, c := range b {
		if numbers == 0 {
			return i
		}
		if c < 0x80 {
			numbers--
		}
	}
	if numbers > 0 {
		return -1
	}
	return len(b)
}

// view returns at least n bytes from an offset on, or all that there are.
func (s *linkStore) view(from uint64, n int) []byte {
	if slab := s.slabs[from/slabBytes]; slab != nil {
		return slab[from%slabBytes:]
	}
	s.in = slices.Grow(s.in[:0], n)[:n]
	read, err := s.spill.ReadAt(s.in, int64(from))
	if read < n && !errors.Is(err, io.EOF) {
		s.fail(fmt.Errorf("pagerank: read links: %w", err))
		return nil
	}
	return s.in[:read]
}

// drop counts the list at a place as waste.
func (s *linkStore) drop(at place) {
	if at == 0 {
		return
	}
	count, b := s.list(at)
	s.size -= count
	s.waste += uint64(max(0, span(b, count)) + align)
}

// wasteful reports whether more than half of the arena is waste. A spill is not rewritten.
func (s *linkStore) wasteful() bool {
	return s.spill == nil && s.waste > slabBytes && s.waste > s.end/2
}

func (s *linkStore) bytes() int {
	held := len(s.slabs)
	if s.spill != nil {
		held -= s.run // the spill has them
	}
	return held*slabBytes + cap(s.slabs)*int(unsafe.Sizeof([]byte{})) + cap(s.out) + cap(s.in)
}
