package extent

import (
	"slices"
	"sort"
)

// A Pool is the memory budget of all buffers. It is not safe for concurrent use.
type Pool struct {
	size  int   // of a page
	limit int64 // pages; the last entry before a flush may exceed it a little
	used  int
	free  [][]byte // pages of the last slab, and returned pages
}

// NewPool returns a pool with a budget of bytes, in pages of the given size.
func NewPool(bytes int64, page int) *Pool {
	p := &Pool{size: page}
	p.SetLimit(bytes)
	return p
}

// SetLimit sets the budget in bytes.
func (p *Pool) SetLimit(bytes int64) { p.limit = max(1, bytes/int64(p.size)) }

// Used returns the bytes of the pages in use.
func (p *Pool) Used() int64 { return int64(p.used) * int64(p.size) }

// Limit returns the budget in bytes.
func (p *Pool) Limit() int64 { return p.limit * int64(p.size) }

// Full reports whether at least the given number of eighths are in use.
func (p *Pool) Full(eighths int) bool { return int64(p.used)*8 >= p.limit*int64(eighths) }

// take returns a page. Pages are cut from slabs, so that the garbage collector sees few objects.
func (p *Pool) take() []byte {
	if len(p.free) == 0 {
		slab := make([]byte, min(max(1<<20/int64(p.size), 1), p.limit)*int64(p.size))
		for ; len(slab) > 0; slab = slab[p.size:] {
			p.free = append(p.free, slab[:p.size:p.size])
		}
	}
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.used++
	return page
}

// A buffer holds entries in blocks of whole entries. An entry may span pages.
type buffer struct {
	pages [][]byte
	bytes int
	count int
	cuts  []cut // one for each block, the last of which still grows
	pins  int   // views that read it
}

// A cut says where a block begins.
type cut struct{ at, first int } // bytes and entries before it

// extend returns room for the next entry, which the caller must fill. It returns nil if the entry
// does not fit in the current page: then the caller must use append.
func (b *buffer) extend(p *Pool, size int) []byte {
	from := b.bytes % p.size
	if from == 0 || from+size > p.size {
		return nil
	}
	b.begin()
	b.bytes += size
	return b.pages[len(b.pages)-1][from : from : from+size]
}

// begin counts an entry, and begins a block with it if the last one is full.
func (b *buffer) begin() {
	if n := len(b.cuts); n == 0 || b.bytes-b.cuts[n-1].at >= BlockSize {
		b.cuts = append(b.cuts, cut{b.bytes, b.count})
	}
	b.count++
}

func (b *buffer) append(p *Pool, entry []byte) {
	b.begin()
	for len(entry) > 0 {
		if b.bytes == len(b.pages)*p.size {
			b.pages = append(b.pages, p.take())
		}
		n := copy(b.pages[len(b.pages)-1][b.bytes%p.size:], entry)
		b.bytes += n
		entry = entry[n:]
	}
}

// block appends the bytes of the i-th block to dst and returns how many entries they are.
func (b *buffer) block(i int, dst []byte) ([]byte, int) {
	at, end, count := b.cuts[i].at, b.bytes, b.count-b.cuts[i].first
	if i+1 < len(b.cuts) {
		end, count = b.cuts[i+1].at, b.cuts[i+1].first-b.cuts[i].first
	}
	for size := len(b.pages[0]); at < end; {
		from := at % size
		to := min(size, from+end-at)
		dst = append(dst, b.pages[at/size][from:to]...)
		at += to - from
	}
	return dst, count
}

// blockOf returns which block has an entry.
func (b *buffer) blockOf(entry int) int {
	return sort.Search(len(b.cuts), func(i int) bool { return b.cuts[i].first > entry }) - 1
}

// clone copies a buffer with its pages. The copies do not count towards a pool.
func (b *buffer) clone() *buffer {
	c := &buffer{bytes: b.bytes, count: b.count, cuts: slices.Clone(b.cuts)}
	for _, page := range b.pages {
		c.pages = append(c.pages, slices.Clone(page))
	}
	return c
}

// free returns the pages to the pool. Pages that a view still reads are left to the garbage
// collector.
func (b *buffer) free(p *Pool) {
	p.used -= len(b.pages)
	if b.pins == 0 {
		p.free = append(p.free, b.pages...)
		b.pages = nil
	}
}
