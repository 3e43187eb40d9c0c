package pagerank

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// linkStore keeps lists of ids in an append-only arena. A list is sorted and packed: its length,
// the distance of the first id from the page's own, and the distance of each other id from the
// previous one. Most links lead to ids close by or close to each other, and take a byte.
//
// The arena consists of slabs. A list never crosses a slab boundary, except that a long one starts
// a run of slabs that are contiguous in memory.
type linkStore struct {
	slabs [][]byte // each extends to the end of its run
	end   uint64   // where the next list goes
	waste uint64   // bytes of lists that were replaced
	size  int      // number of links, without waste
	out   []byte   // scratch for a list to be written
	err   error    // ErrFull, once places have run out
}

const (
	slabBytes = 1 << 16
	align     = 2 // lets 32 bits address 8 GiB
)

// A place is the offset of a list, in units of align, from 1 on; 0 means none.
type place uint32

// put stores the sorted list of a page, which must not be empty or have duplicates. It returns 0 if it cannot.
func (s *linkStore) put(page uint32, ids []uint32) place {
	if s.err != nil {
		return 0
	}
	s.out = encode(s.out[:0], page, ids)
	if room := uint64(len(s.slabs))*slabBytes - s.end; uint64(len(s.out)) > room && !s.open(len(s.out)) {
		return 0
	}
	at := place(s.end/align + 1)
	copy(s.slabs[s.end/slabBytes][s.end%slabBytes:], s.out)
	s.end += uint64(len(s.out))
	s.size += len(ids)
	return at
}

// encode appends the list of a page to b, which is empty, and pads it to align.
func encode(b []byte, page uint32, ids []uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	off := int64(ids[0]) - int64(page)
	b = binary.AppendUvarint(b, uint64(off<<1^off>>63)) // the sign goes last
	for i, id := range ids[1:] {
		b = binary.AppendUvarint(b, uint64(id-ids[i]-1))
	}
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// open starts a run of slabs for n bytes.
func (s *linkStore) open(n int) bool {
	count := (n + slabBytes - 1) / slabBytes
	start := uint64(len(s.slabs)) * slabBytes
	if start+uint64(count)*slabBytes > (1<<32-1)*align {
		s.err = ErrFull
		return false
	}
	memory := make([]byte, count*slabBytes)
	for i := range count {
		s.slabs = append(s.slabs, memory[i*slabBytes:])
	}
	s.end = start
	return true
}

// read appends the list of a page to ids.
func (s *linkStore) read(at place, page uint32, ids []uint32) []uint32 {
	if at == 0 {
		return ids
	}
	count, b := s.list(at)
	start := len(ids)
	ids = slices.Grow(ids, count)[:start+count]
	decode(b, page, ids[start:])
	return ids
}

// decode reverses encode, without the length. It fills ids.
func decode(b []byte, page uint32, ids []uint32) {
	first, n := binary.Uvarint(b)
	next := uint32(int64(page) + (int64(first>>1) ^ -int64(first&1)))
	b = b[n:]
	ids[0] = next
	for i := range ids[1:] {
		gap, n := uint64(b[0]), 1
		if gap >= 0x80 { // rare: most gaps take a byte, for which calling Uvarint costs more
			gap, n = binary.Uvarint(b)
		}
		b = b[n:]
		next += uint32(gap) + 1
		ids[1+i] = next
	}
}

// list returns how many ids the list at a place has, and the bytes after that number, which go on
// beyond the list's.
func (s *linkStore) list(at place) (count int, b []byte) {
	from := uint64(at-1) * align
	b = s.slabs[from/slabBytes][from%slabBytes:]
	c, n := binary.Uvarint(b)
	return int(c), b[n:]
}

// drop counts the list at a place as waste.
func (s *linkStore) drop(at place) {
	count, b := s.list(at)
	s.size -= count
	s.waste += uint64(span(b, count) + align)
}

// span returns the length of so many numbers in bytes.
func span(b []byte, numbers int) (n int) {
	for ; numbers > 0; n++ {
		if b[n] < 0x80 {
			numbers--
		}
	}
	return n
}

// wasteful reports whether more than half of the arena is waste.
func (s *linkStore) wasteful() bool { return s.waste > slabBytes && s.waste > s.end/2 }

func (s *linkStore) bytes() int {
	return len(s.slabs)*slabBytes + cap(s.slabs)*int(unsafe.Sizeof([]byte{})) + cap(s.out)
}
