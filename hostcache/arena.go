package hostcache

import (
	"encoding/binary"
	"math/bits"
)

const (
	// unit is what a block is a multiple of: half a cache line.
	unit = 32

	// A chunk has 8 MiB, so that a collector that marks chunks has little to do, and most of it can be
	// in big pages. The first ones are smaller, for the sake of small tries.
	chunkShift = 18
	addrBits   = 30 // of the number of a block: an arena has 32 GiB at most
	chunkUnits = 1 << chunkShift
	maxChunks  = 1 << (addrBits - chunkShift)
	minChunk   = 4096 / unit

	// Free blocks are sorted into classes: one for each size below classesPer units, and then so
	// many for each power of two. That fits blocks of up to a kilobyte exactly.
	classBits  = 5
	classesPer = 1 << classBits
	classes    = (chunkShift - classBits + 1) * classesPer
)

var le = binary.LittleEndian

// An arena hands out blocks of bytes under numbers of 32 bits, which count units. Blocks do not
// move, and the number 0 stands for none. Blocks that are given back are joined with free
// neighbours, and found again by their size class: two-level segregated fit (Masmano and others
// 2004), so that both take constant time and little is lost between blocks.
//
// The first four bytes of a block are the arena's: the size in units, shifted by two bits that say
// whether the block before is free, and whether the block itself is. A free block also begins with
// the links of the list of its class, and ends with its size, by which the block behind finds its
// beginning.
type arena struct {
	chunks   [][]byte // the first is nil, so that no block has number 0
	vacant   []uint32 // of chunks, those without memory
	spare    uint32   // a chunk that is wholly free, 0 if there is none
	reserved int      // bytes in chunks
	used     int      // bytes in blocks
	end      uintptr  // where the latest chunk ends, a hint for adviseHuge

	bins  [classes]uint32             // lists of free blocks
	inUse [(classes + 63) / 64]uint64 // a bit for each list that is not empty
}

const (
	blockFree  = 1
	beforeFree = 2

	nextAt = 4
	prevAt = 8
)

// at returns the memory from the beginning of a block on.
func (a *arena) at(addr uint32) []byte {
	return a.chunks[addr>>chunkShift][addr%chunkUnits*unit:]
}

func (a *arena) header(addr uint32) uint32       { return le.Uint32(a.at(addr)) }
func (a *arena) setHeader(addr uint32, h uint32) { le.PutUint32(a.at(addr), h) }

// size returns the bytes of a block.
func size(block []byte) int { return int(le.Uint32(block)>>2) * unit }

// alloc returns a block of at least so many bytes. Apart from its header, it holds whatever was
// there before.
func (a *arena) alloc(bytes int) uint32 {
	n := uint32((bytes + unit - 1) / unit)
	bin := a.search(n)
	if bin < 0 {
		a.grow(n)
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
		// One empty chunk is kept, lest a trie at the edge of two ask for memory over and over.
		a.reserved -= len(a.chunks[number])
		a.chunks[number] = nil
		a.vacant = append(a.vacant, number)
		return
	case whole:
		a.spare = number
	}
	a.insert(addr, n)
}

// grow gets memory for a block of n units.
func (a *arena) grow(n uint32) {
	want := uint32(1) << bits.Len(uint(a.reserved/8/unit)) >> 1
	want = min(max(want, minChunk), chunkUnits)
	// One more is for the mark at the end, and some for the rounding of search.
	for want < n+n/4+1 {
		want *= 2
	}
	number := uint32(max(len(a.chunks), 1))
	if k := len(a.vacant); k > 0 {
		number = a.vacant[k-1]
		a.vacant = a.vacant[:k-1]
	}
	if number >= maxChunks {
		panic("hostcache: more than 32 GiB of entries in one trie")
	}
	for int(number) >= len(a.chunks) {
		a.chunks = append(a.chunks, nil)
	}
	a.chunks[number] = make([]byte, want*unit)
	a.end = adviseHuge(a.chunks[number], a.end)
	a.reserved += int(want) * unit
	first := number << chunkShift
	a.setHeader(first+want-1, 1<<2) // a block that is never free ends the chunk
	a.insert(first, want-1)
}

// class returns the list that a free block of n units is in.
func class(n uint32) int {
	if n < classesPer {
		return int(n)
	}
	log := bits.Len32(n) - 1 - classBits
	return log*classesPer + int(n>>log)
}

// search returns the first list whose blocks all have n units or more, -1 if there is none.
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

// insert makes the n units at addr a free block. It requires that neither neighbour is free.
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

// unlink takes a free block of n units from its list.
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
