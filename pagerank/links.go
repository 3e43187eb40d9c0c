package pagerank

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrFull says that no more links can be kept. Pages fetched from then on pass on their scores as
// with DL1.
var ErrFull = errors.New("pagerank: more than 16 GiB of links")

// A Spill keeps links outside of memory; an *os.File does.
type Spill interface {
	io.ReaderAt
	io.WriterAt
}

// linkStore keeps lists of ids, sorted and packed as differences, in an append-only arena of slabs.
// Two thirds of a web page's links are to ids close to each other, so that most take a byte.
type linkStore struct {
	slabs [][]byte // of slabBytes; nil where the spill has it
	spill Spill
	room  uint64 // bytes of all slabs
	end   uint64 // where the next list goes
	waste uint64 // bytes of lists that were replaced
	size  int    // links that are not waste
	out   []byte // scratch for a list on its way in
	in    []byte // and for one that lies in two slabs, or outside
	err   error  // the first that the spill gave
}

const (
	slabBytes = 1 << 16
	firstSlab = 1 << 12
	align     = 4 // so that 32 bits reach 16 GiB
	firstRead = 64
)

// A place says where a list is, in units of align and from 1 on; 0 means nowhere.
type place uint32

// put keeps a list that is sorted and has no id twice. It returns 0 if it cannot.
func (s *linkStore) put(ids []uint32) place {
	if s.err != nil {
		return 0
	}
	s.encode(ids)
	if s.end+uint64(len(s.out)) > (1<<32-1)*align {
		s.err = ErrFull
		return 0
	}
	at := place(s.end/align + 1)
	for rest := s.out; len(rest) > 0; {
		if s.end == s.room && !s.open() {
			return 0
		}
		n := copy(s.slabs[len(s.slabs)-1][s.end%slabBytes:], rest)
		rest, s.end = rest[n:], s.end+uint64(n)
	}
	s.size += len(ids)
	return at
}

// appendList appends the number of ids, the first of them, and how far each is behind the one
// before, less one.
func appendList(b []byte, ids []uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	next := uint32(0)
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id-next))
		next = id + 1
	}
	return b
}

// encode writes the length of a list, the list, and padding to s.out.
func (s *linkStore) encode(ids []uint32) {
	const room = binary.MaxVarintLen32
	body := appendList(append(s.out[:0], make([]byte, room)...), ids)
	var head [room]byte
	n := binary.PutUvarint(head[:], uint64(len(body)-room))
	copy(body[room-n:], head[:n])
	body = slices.Delete(body, 0, room-n)
	for len(body)%align != 0 {
		body = append(body, 0)
	}
	s.out = body
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
	s.slabs = append(s.slabs, s.slabs[last])
	s.slabs[last] = nil
	return true
}

// read appends the list at a place to ids. What cannot be read is an empty list.
func (s *linkStore) read(at place, ids []uint32) []uint32 {
	if at == 0 {
		return ids
	}
	body := s.body(at)
	count, n := binary.Uvarint(body)
	if n <= 0 {
		return ids
	}
	body = body[n:]
	next := uint32(0)
	for range count {
		gap, n := uint32(0), 0
		for shift := 0; n < len(body); shift += 7 {
			b := body[n]
			n++
			gap |= uint32(b&0x7f) << shift
			if b < 0x80 {
				break
			}
		}
		body = body[n:]
		next += gap
		ids = append(ids, next)
		next++
	}
	return ids
}

// body returns what was encoded at a place, valid until the next call.
func (s *linkStore) body(at place) []byte {
	from := uint64(at-1) * align
	start := s.view(from, min(firstRead, s.end-from))
	size, n := binary.Uvarint(start)
	if n <= 0 {
		return nil
	}
	if all := size + uint64(n); all > uint64(len(start)) {
		start = s.view(from, all)
	}
	if uint64(len(start)) < size+uint64(n) {
		return nil
	}
	return start[n : uint64(n)+size]
}

// view returns n bytes from an offset on, copied only if they do not lie together in memory.
func (s *linkStore) view(from, n uint64) []byte {
	slab, off := from/slabBytes, from%slabBytes
	if s.slabs[slab] != nil && off+n <= slabBytes {
		return s.slabs[slab][off : off+n]
	}
	s.in = slices.Grow(s.in[:0], int(n))[:n]
	for got := uint64(0); got < n; {
		slab, off := (from+got)/slabBytes, (from+got)%slabBytes
		part := s.in[got:min(n, got+slabBytes-off)]
		if s.slabs[slab] != nil {
			copy(part, s.slabs[slab][off:])
		} else if _, err := s.spill.ReadAt(part, int64(from+got)); err != nil {
			s.err = fmt.Errorf("pagerank: read links: %w", err)
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
	body := s.body(at)
	count, _ := binary.Uvarint(body)
	s.size -= int(count)
	s.waste += uint64(len(body)) + align
}

// wasteful tells whether more than half of the arena is waste. A spill is not rewritten.
func (s *linkStore) wasteful() bool {
	return s.spill == nil && s.waste > slabBytes && s.waste > s.end/2
}

func (s *linkStore) bytes() int {
	n := cap(s.out) + cap(s.in)
	for _, slab := range s.slabs {
		n += len(slab)
	}
	return n
}
