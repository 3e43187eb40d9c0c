package pagerank

import (
	"encoding/binary"
	"hash/maphash"
	"unsafe"
)

// names assigns dense ids to strings, in order of arrival. The text is front-coded in blocks: URLs
// that are found one after the other mostly share a prefix. Only the first string of a block is
// complete, so a string is read by walking through its block. The index has a byte of the hash and
// an id for each string. It compares texts, so ids are exact.
type names struct {
	n       int
	blocks  []uint64 // where the complete blocks are: slab and offset
	slabs   [][]byte
	open    []byte // the last block, which is not complete
	last    []byte // the last string
	scratch []byte

	seed  maphash.Seed
	index [indexParts]indexPart
}

const (
	blockNames = 16
	slabBits   = 17 // of an offset
	indexParts = 256
	longestURL = 8 << 10
)

// An indexPart is an open-addressed table of its own, so that growing one is quick.
type indexPart struct {
	tags []uint8 // 0 is free
	ids  []uint32
	n    int
}

// add returns the id of a string. A new string gets the next id.
func (t *names) add(name string) (id uint32, added bool) {
	if t.n == 0 && t.seed == (maphash.Seed{}) {
		t.seed = maphash.MakeSeed() // pages must not be able to choose strings that collide
	}
	hash := maphash.String(t.seed, name)
	p := &t.index[hash%indexParts]
	if id, ok := t.find(p, hash, name); ok {
		return id, false
	}
	if 5*(p.n+1) > 4*len(p.tags) { // one in five stays free
		t.grow(p)
	}
	id = uint32(t.n)
	p.insert(hash, id)
	t.append(name)
	return id, true
}

// lookup returns the id of a string.
func (t *names) lookup(name string) (id uint32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	hash := maphash.String(t.seed, name)
	return t.find(&t.index[hash%indexParts], hash, name)
}

func (t *names) find(p *indexPart, hash uint64, name string) (id uint32, ok bool) {
	if len(p.tags) == 0 {
		return 0, false
	}
	tag := tagOf(hash)
	for at := p.start(hash); p.tags[at] != 0; at = p.after(at) {
		if p.tags[at] == tag && t.is(p.ids[at], name) {
			return p.ids[at], true
		}
	}
	return 0, false
}

func tagOf(hash uint64) uint8 { return max(uint8(hash>>8), 1) }

// start returns the slot where a search begins.
func (p *indexPart) start(hash uint64) int { return int(hash >> 32 * uint64(len(p.tags)) >> 32) }

func (p *indexPart) after(at int) int {
	if at++; at == len(p.tags) {
		return 0
	}
	return at
}

func (p *indexPart) insert(hash uint64, id uint32) {
	at := p.start(hash)
	for p.tags[at] != 0 {
		at = p.after(at)
	}
	p.tags[at], p.ids[at] = tagOf(hash), id
	p.n++
}

// grow makes room in a part of the index. Hashes are computed again; keeping them would take more
// memory than the index itself.
func (t *names) grow(p *indexPart) {
	old := *p
	size := len(old.tags) + len(old.tags)/2 + 4
	*p = indexPart{tags: make([]uint8, size), ids: make([]uint32, size)}
	for at, tag := range old.tags {
		if tag != 0 {
			p.insert(maphash.Bytes(t.seed, t.bytes(old.ids[at])), old.ids[at])
		}
	}
}

// append writes a string behind the last one.
func (t *names) append(name string) {
	shared := 0
	if t.n%blockNames > 0 {
		shared = sharedPrefix(t.last, name)
	}
	t.open = binary.AppendUvarint(t.open, uint64(shared))
	t.open = binary.AppendUvarint(t.open, uint64(len(name)-shared))
	t.open = append(t.open, name[shared:]...)
	t.last = append(t.last[:0], name...)
	if t.n++; t.n%blockNames == 0 {
		t.closeBlock()
	}
}

func sharedPrefix(a []byte, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// closeBlock moves the open block to its final place.
func (t *names) closeBlock() {
	last := len(t.slabs) - 1
	if last < 0 || len(t.slabs[last])+len(t.open) > cap(t.slabs[last]) {
		t.slabs = append(t.slabs, make([]byte, 0, max(1<<(slabBits-1), len(t.open))))
		last++
	}
	at := len(t.slabs[last])
	t.slabs[last] = append(t.slabs[last], t.open...)
	t.blocks = append(t.blocks, uint64(last)<<slabBits|uint64(at))
	t.open = t.open[:0]
}

// block returns the block of an id, perhaps with the bytes that follow it.
func (t *names) block(id uint32) []byte {
	block := id / blockNames
	if int(block) == len(t.blocks) {
		return t.open
	}
	at := t.blocks[block]
	return t.slabs[at>>slabBits][at&(1<<slabBits-1):]
}

// bytes returns the string with an id below n. It is valid until the next call.
func (t *names) bytes(id uint32) []byte {
	t.scratch, _ = walk(t.block(id), t.scratch[:0], int(id%blockNames)+1)
	return t.scratch
}

// walk reads consecutive strings. It returns the last of them and the bytes after it.
func walk(b, name []byte, count int) (last, rest []byte) {
	for range count {
		shared, suffix, after := next(b)
		name = append(name[:shared], suffix...)
		b = after
	}
	return name, b
}

// next reads a string: the length of the prefix shared with the previous one, and the rest.
func next(b []byte) (shared int, suffix, after []byte) {
	length := 0
	if b[0] < 0x80 && b[1] < 0x80 { // nearly always
		shared, length, b = int(b[0]), int(b[1]), b[2:]
	} else {
		s, n := binary.Uvarint(b)
		l, m := binary.Uvarint(b[n:])
		shared, length, b = int(s), int(l), b[n+m:]
	}
	return shared, b[:length], b[length:]
}

// is reports whether the string with an id equals name. It tracks the length of the prefix that
// name shares with the previous string, and skips strings that cannot share more, so it copies
// nothing.
func (t *names) is(id uint32, name string) bool {
	match, length, b := 0, 0, t.block(id)
	for range id%blockNames + 1 {
		shared, suffix, after := next(b)
		if shared <= match {
			match = shared + sharedPrefix(suffix, name[shared:])
		}
		length, b = shared+len(suffix), after
	}
	return match == len(name) && length == len(name)
}

// all calls yield with each string in order. The bytes are valid until it returns.
func (t *names) all(yield func(name []byte) bool) {
	var name []byte
	for first := 0; first < t.n; first += blockNames {
		b := t.block(uint32(first))
		name = name[:0]
		for range min(blockNames, t.n-first) {
			if name, b = walk(b, name, 1); !yield(name) {
				return
			}
		}
	}
}

// size returns the bytes that the strings and the index take.
func (t *names) size() (sum int) {
	for _, s := range t.slabs {
		sum += cap(s) + int(unsafe.Sizeof(s))
	}
	for i := range t.index {
		sum += cap(t.index[i].tags) + 4*cap(t.index[i].ids)
	}
	return sum + 8*cap(t.blocks) + cap(t.open) + cap(t.last) + cap(t.scratch) +
		int(unsafe.Sizeof(*t))
}
