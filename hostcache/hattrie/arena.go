package hattrie

import (
	"encoding/binary"
	"math/bits"
)

const (
	// unit is the granularity of blocks: a cache line.
	unit = 64

	// A block's address counts units. An arena holds 16 GiB at most, in chunks of at most 8 MiB, so
	// that the last chunk wastes little and the collector has few objects to mark.
	addrBits   = 28
	chunkShift = 17
	chunkUnits = 1 << chunkShift
	maxChunks  = 1 << (addrBits - chunkShift)

	// From this number of chunks on, none is much smaller than the others.
	manyChunks = maxChunks / 8

	pageSize = 8 << 10 // the Go heap rounds bigger objects up to it
	minChunk = 4 << 10

	// Free blocks are kept in classes: one class for each size below classesPer units, and
	// classesPer classes for each power of two above.
	classBits  = 5
	classesPer = 1 << classBits
	classes    = (chunkShift - classBits + 1) * classesPer
)

var le = binary.LittleEndian

// An arena allocates blocks of bytes. A block is identified by its address, never by a pointer, so
// the garbage collector has nothing to trace. Address 0 means no block. Blocks do not move.
//
// The allocator is the two-level segregated fit of Masmano and others (2004): allocating and
// freeing take constant time, and free neighbours are always merged.
//
// The first four bytes of a block belong to the arena: its size in units, shifted left by two, and
// the two flags below. A free block also holds the links of its class's list, and in its last four
// bytes its size, by which the next block finds its beginning.
type arena struct {
	chunks   [][]byte // the first is nil, so that no block has address 0
	vacant   []uint32 // numbers of chunks without memory
	spare    uint32   // the number of a chunk that is entirely free, 0 if there is none
	reserved int      // bytes of all chunks
	used     int      // bytes of allocated blocks
	limit    int      // alloc does not take reserved beyond it

	bins  [classes]uint32             // heads of the lists of free blocks
	inUse [(classes + 63) / 64]uint64 // a bit for each list that is not empty
}

const (
	blockFree  = 1
	beforeFree = 2 // the block before this one is free

	nextAt = 4
	prevAt = 8
)

// at returns the memory from the beginning of a block to the end of its chunk.
func (a *arena) at(addr uint32) []byte {
	return a.chunks[addr>>chunkShift][addr%chunkUnits*unit:]
}

func (a *arena) header(addr uint32) uint32       { return le.Uint32(a.at(addr)) }
func (a *arena) setHeader(addr uint32, h uint32) { le.PutUint32(a.at(addr), h) }

// sizeOf returns the bytes of a block.
func sizeOf(block []byte) int { return int(le.Uint32(block)>>2) * unit }

func unitsFor(bytes int) uint32 { return uint32((bytes + unit - 1) / unit) }

// alloc returns the address of a block with at least that many bytes, or 0 if the limit forbids it.
// Behind its header, the block holds arbitrary bytes.
func (a *arena) alloc(bytes int) uint32 {
	n := unitsFor(bytes)
	bin := a.search(n)
	if bin < 0 {
		if !a.grow(n) {
			return 0
		}
		bin = a.search(n)
	}
	addr := a.bins[bin]
	have := a.header(addr) >> 2
	a.unlink(addr, have)
	if addr>>chunkShift == a.spare {
		a.spare = 0
	}
	behind := addr + have
	if have > n {
		a.insert(addr+n, have-n)
	} else {
		a.setHeader(behind, a.header(behind)&^beforeFree)
	}
	a.setHeader(addr, n<<2)
	a.used += int(n) * unit
	return addr
}

// free takes a block back.
func (a *arena) free(addr uint32) {
	h := a.header(addr)
	n := h >> 2
	a.used -= int(n) * unit
	if behind := a.header(addr + n); behind&blockFree != 0 {
		a.unlink(addr+n, behind>>2)
		n += behind >> 2
	}
	if h&beforeFree != 0 {
		before := le.Uint32(a.at(addr - 1)[unit-4:])
		addr -= before
		n += before
		a.unlink(addr, before)
	}
	number := addr >> chunkShift
	whole := int(n+1)*unit == len(a.chunks[number])
	switch {
	case whole && a.spare != 0:
		// Keep one free chunk. Otherwise a trie at the boundary would allocate and free one over
		// and over.
		a.reserved -= len(a.chunks[number])
		a.chunks[number] = nil
		a.vacant = append(a.vacant, number)
		return
	case whole:
		a.spare = number
	}
	a.insert(addr, n)
}

// shrink frees the end of a block. The first bytes stay where they are.
func (a *arena) shrink(addr uint32, bytes int) {
	h, n := a.header(addr), unitsFor(bytes)
	if have := h >> 2; n < have {
		a.setHeader(addr, n<<2|h&beforeFree)
		a.setHeader(addr+n, (have-n)<<2)
		a.free(addr + n)
	}
}

// grow adds a chunk with room for a block of n units, and reports whether it could.
func (a *arena) grow(n uint32) (ok bool) {
	// One unit marks the end of the chunk, and search rounds up.
	least, left := roundUp(int(n+n/classesPer+2)*unit), a.limit-a.reserved
	if len(a.chunks)-len(a.vacant) > manyChunks {
		// A limit that rises in small steps must not use up the numbers of chunks for small ones.
		least = max(least, roundUp(min(a.reserved/64, chunkUnits*unit)))
	}
	if least > left {
		return false
	}
	// A chunk adds a thirty-second of the present size, so little is held in vain.
	want := roundUp(min(a.reserved/32, chunkUnits*unit))
	bytes := max(least, min(want, left/pageSize*pageSize))

	number := uint32(max(len(a.chunks), 1))
	if k := len(a.vacant); k > 0 {
		number = a.vacant[k-1]
		a.vacant = a.vacant[:k-1]
	}
	if number >= maxChunks {
		panic("hattrie: more than 16 GiB in one trie")
	}
	for int(number) >= len(a.chunks) {
		a.chunks = append(a.chunks, nil)
	}
	a.chunks[number] = make([]byte, bytes)
	a.reserved += bytes
	first, end := number<<chunkShift, uint32(bytes/unit)-1
	a.setHeader(first+end, 1<<2) // the mark at the end is a block that is never free
	a.insert(first, end)
	return true
}

// roundUp returns the bytes that the Go heap takes for a chunk.
func roundUp(bytes int) int {
	if bytes < 4*pageSize {
		return max(1<<bits.Len(uint(bytes-1)), minChunk)
	}
	return (bytes + pageSize - 1) / pageSize * pageSize
}

// class returns the list for free blocks of n units.
func class(n uint32) int {
	if n < classesPer {
		return int(n)
	}
	log := bits.Len32(n) - 1 - classBits
	return log*classesPer + int(n>>log)
}

// search returns a list whose blocks all have n units or more, or -1.
func (a *arena) search(n uint32) int {
	if n > classesPer {
		n += 1<<(bits.Len32(n)-1-classBits) - 1
	}
	bin := class(n)
	for word := bin / 64; word < len(a.inUse); word++ {
		if found := a.inUse[word] &^ (1<<max(0, bin-word*64) - 1); found != 0 {
			return word*64 + bits.TrailingZeros64(found)
		}
	}
	return -1
}

// insert makes n units a free block. Neither neighbour may be free.
func (a *arena) insert(addr, n uint32) {
	bin := class(n)
	head := a.bins[bin]
	b := a.at(addr)
	le.PutUint32(b, n<<2|blockFree)
	le.PutUint32(b[nextAt:], head)
	le.PutUint32(b[prevAt:], 0)
	le.PutUint32(b[n*unit-4:], n)
	if head != 0 {
		le.PutUint32(a.at(head)[prevAt:], addr)
	}
	a.bins[bin] = addr
	a.inUse[bin/64] |= 1 << (bin % 64)
	a.setHeader(addr+n, a.header(addr+n)|beforeFree)
}

// unlink takes a free block of n units off its list.
func (a *arena) unlink(addr, n uint32) {
	b := a.at(addr)
	next, prev := le.Uint32(b[nextAt:]), le.Uint32(b[prevAt:])
	if next != 0 {
		le.PutUint32(a.at(next)[prevAt:], prev)
	}
	if prev != 0 {
		le.PutUint32(a.at(prev)[nextAt:], next)
		return
	}
	bin := class(n)
	a.bins[bin] = next
	if next == 0 {
		a.inUse[bin/64] &^= 1 << (bin % 64)
	}
}
