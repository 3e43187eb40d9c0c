package satstore

import "slices"

// blockSize is how many bytes of entries make a block: large enough that its header and checksum
// cost nothing, small enough that a record which is out for long does not keep much memory.
const blockSize = 64 << 10

// A pagePool is the one memory budget of all buffers.
type pagePool struct {
	size  int // of a page
	limit int // pages; a little more may be used, by the last entry before a flush
	used  int
	free  [][]byte // those of the last slab and those that were given back
}

func newPagePool(o Options) *pagePool {
	return &pagePool{size: o.Page, limit: int(o.Buffer / int64(o.Page))}
}

func (p *pagePool) full() bool { return p.used >= p.limit }

// take returns a page. Pages are cut from slabs, so that the collector sees few objects.
func (p *pagePool) take() []byte {
	if len(p.free) == 0 {
		slab := make([]byte, min(max(1<<20/p.size, 1), p.limit)*p.size)
		for ; len(slab) > 0; slab = slab[p.size:] {
			p.free = append(p.free, slab[:p.size:p.size])
		}
	}
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.used++
	return page
}

func (p *pagePool) give(pages [][]byte) {
	p.free = append(p.free, pages...)
	p.used -= len(pages)
}

// A buffer holds entries, one after the other, cut into blocks of whole entries. It grows by pages
// wherever they come from; an entry may begin in one page and end in another.
type buffer struct {
	pages [][]byte
	bytes int
	count int
	cuts  []cut // one for each block, the last of which still grows
}

// A cut says where a block begins.
type cut struct{ at, first int } // bytes and entries before it

// extend returns room for the next entry, for the caller to fill with just so many bytes, or nil if
// it does not fit into a page that is begun: then it has to be made elsewhere, and appended.
func (b *buffer) extend(p *pagePool, size int) []byte {
	from := b.bytes % p.size
	if from == 0 || from+size > p.size {
		return nil
	}
	b.begin()
	b.bytes += size
	return b.pages[len(b.pages)-1][from : from : from+size]
}

// begin counts an entry, and begins a block with it if the last one is large enough.
func (b *buffer) begin() {
	if n := len(b.cuts); n == 0 || b.bytes-b.cuts[n-1].at >= blockSize {
		b.cuts = append(b.cuts, cut{b.bytes, b.count})
	}
	b.count++
}

func (b *buffer) append(p *pagePool, entry []byte) {
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
func (b *buffer) block(p *pagePool, i int, dst []byte) ([]byte, int) {
	at, end, count := b.cuts[i].at, b.bytes, b.count-b.cuts[i].first
	if i+1 < len(b.cuts) {
		end, count = b.cuts[i+1].at, b.cuts[i+1].first-b.cuts[i].first
	}
	for at < end {
		page := b.pages[at/p.size]
		from := at % p.size
		to := min(p.size, from+end-at)
		dst = append(dst, page[from:to]...)
		at += to - from
	}
	return dst, count
}

// clone copies a buffer with its pages.
func (b *buffer) clone() buffer {
	c := buffer{bytes: b.bytes, count: b.count, cuts: slices.Clone(b.cuts)}
	for _, page := range b.pages {
		c.pages = append(c.pages, slices.Clone(page))
	}
	return c
}

// clear gives all pages back. The zeroed buffer keeps the memory of its lists, as a bucket is filled
// and written again and again.
func (b *buffer) clear(p *pagePool) {
	p.give(b.pages)
	*b = buffer{pages: b.pages[:0], cuts: b.cuts[:0]}
}
