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

// linkStore keeps lists of ids, sorted and packed as differences, in an append-only arena of slabs:
// how many, how far the first is from the page's own, and how far each other is behind the one
// before. Most links of a web page are to ids close by or close to each other, and take a byte.
type linkStore struct {
	slabs [][]byte // of slabBytes; nil where the spill has it
	spill spill
	room  uint64 // bytes of all slabs
	end   uint64 // where the next list goes
	waste uint64 // bytes of lists that were replaced
	size  int    // links that are not waste
	last  uint32 // the highest id of all
	out   []byte // scratch for a list on its way in
	in    []byte // and for one that lies in two slabs, or outside
	err   error  // the first that the spill gave
}

const (
	slabBytes = 1 << 16
	firstSlab = 1 << 12
	align     = 2 // so that 32 bits reach 8 GiB
	firstRead = 64
)

// A place says where a list is, in units of align and from 1 on; 0 means nowhere.
type place uint32

// put keeps a list that is sorted, has no id twice, and belongs to a page. It returns 0 if it cannot.
func (s *linkStore) put(page uint32, ids []uint32) place {
	if s.err != nil {
		return 0 // a slab is lost, or 32 bits are not enough: what comes now could not be found again
	}
	most := uint64(len(ids)+1)*binary.MaxVarintLen32 + align
	if s.end+most > (1<<32-1)*align {
		s.err = ErrFull
		return 0
	}
	at := place(s.end/align + 1)
	if s.room-s.end >= most {
		// Nearly always a list fits into the slab even at its longest, and needs no copy.
		slab := s.slabs[len(s.slabs)-1]
		s.end += uint64(len(encode(slab[s.end%slabBytes:][:0], page, ids)))
	} else if !s.putInParts(encode(s.out[:0], page, ids)) {
		return 0
	}
	s.size += len(ids)
	if len(ids) > 0 {
		s.last = max(s.last, ids[len(ids)-1])
	}
	return at
}

// putInParts writes what may not fit into the last slab.
func (s *linkStore) putInParts(list []byte) bool {
	s.out = list // to be used again
	for len(list) > 0 {
		if s.end == s.room && !s.open() {
			return false
		}
		n := copy(s.slabs[len(s.slabs)-1][s.end%slabBytes:], list)
		list, s.end = list[n:], s.end+uint64(n)
	}
	return true
}

// encode appends the list of a page to b, which is empty, and fills up to align.
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

// open makes room. The first slab grows, so that small graphs stay small. Of the others, a full one
// goes to the spill, if there is one, and its memory is used again.
func (s *linkStore) open() bool {
	last := len(s.slabs) - 1
	switch {
	case last < 0:
		s.slabs = append(s.slabs, make([]byte, firstSlab))
		s.room = firstSlab
		return true
	case s.room < slabBytes:
		// Doubling moves what is there, which is fine: places count from the beginning.
		s.slabs[0] = append(s.slabs[0], make([]byte, s.room)...)
		s.room *= 2
		return true
	}
	s.room += slabBytes
	if s.spill == nil {
		s.slabs = append(s.slabs, make([]byte, slabBytes))
		return true
	}
	if _, err := s.spill.WriteAt(s.slabs[last], int64(last)*slabBytes); err != nil {
		s.err = fmt.Errorf("pagerank: write links: %w", err)
		return false
	}
	// What the block has still in memory is written over. Nobody reads it there: a slab that is nil
	// is read from the spill.
	s.slabs = append(s.slabs, s.slabs[last])
	s.slabs[last] = nil
	return true
}

// read appends the list of a page to ids. What cannot be read is an empty list.
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

// decode is encode, turned round, without the length. It fills ids, and tells whether they are
// what a page may have: rising, and up to last.
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
		if gap >= 0x80 { // seldom: most gaps take a byte, and calling Uvarint for it costs more
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

// errSpill is what Stats.Err says if a spill gives back other bytes than it got.
var errSpill = errors.New("pagerank: read links: not what was written")

func (s *linkStore) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// list returns how many ids the list at a place has, and the bytes that say which, and perhaps what
// follows them. It is valid until the next call.
func (s *linkStore) list(at place) (count int, b []byte) {
	from := uint64(at-1) * align
	b = s.view(from, min(firstRead, s.end-from))
	// More links than there are ids is a lie that would cost memory.
	c, n := binary.Uvarint(b)
	if n <= 0 || c > uint64(s.last)+1 {
		if b != nil {
			s.fail(errSpill)
		}
		return 0, nil
	}
	// The length in bytes is not kept, for it would take one. In memory all that follows is at hand;
	// from a spill a second, longer piece is read, if the first has not enough numbers.
	most := min(uint64(n)+c*binary.MaxVarintLen32, s.end-from)
	if uint64(len(b)) < most && span(b[n:], int(c)) < 0 {
		b = s.view(from, most)
	}
	return int(c), b[min(n, len(b)):]
}

// span returns how many bytes so many numbers take, or -1 if there are not as many.
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

// view returns n bytes or more from an offset on, copied only if they do not lie together in memory.
func (s *linkStore) view(from, n uint64) []byte {
	slab, off := from/slabBytes, from%slabBytes
	if s.slabs[slab] != nil && off+n <= uint64(len(s.slabs[slab])) {
		return s.slabs[slab][off:]
	}
	s.in = slices.Grow(s.in[:0], int(n))[:n]
	for got := uint64(0); got < n; {
		slab, off := (from+got)/slabBytes, (from+got)%slabBytes
		part := s.in[got:min(n, got+slabBytes-off)]
		if s.slabs[slab] != nil {
			copy(part, s.slabs[slab][off:])
		} else if read, err := s.spill.ReadAt(part, int64(from+got)); read < len(part) {
			// With all that was asked for, an io.EOF is no error.
			s.fail(fmt.Errorf("pagerank: read links: %w", err))
			return nil
		}
		got += uint64(len(part))
	}
	return s.in
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

// wasteful tells whether more than half of the arena is waste. A spill is not rewritten.
func (s *linkStore) wasteful() bool {
	return s.spill == nil && s.waste > slabBytes && s.waste > s.end/2
}

func (s *linkStore) bytes() int {
	slabs := s.room
	if s.spill != nil {
		slabs = min(slabs, slabBytes) // the others are there
	}
	return int(slabs) + cap(s.slabs)*int(unsafe.Sizeof([]byte{})) + cap(s.out) + cap(s.in)
}
