package extent

import (
	"slices"
	"sort"
)

// extentSize is the approximate size of an extent, the unit of reads and writes. A large entry can
// make an extent larger, up to MaxSize.
const extentSize = 1 << 20

// MaxSize bounds an extent, in bytes.
const MaxSize = 4 << 20

// An Extent is a contiguous piece of the data file with some blocks of one part.
type Extent struct {
	At         uint32 // in grains
	Size       uint32 // in bytes
	First      uint64 // entries of the part before it
	Count      uint32
	Generation uint32 // of the first checkpoint that includes it
}

// Span returns the space of an extent.
func (e Extent) Span() Span { return Span{e.At, grains(int(e.Size))} }

// Offset returns the offset of an extent in the data file.
func (e Extent) Offset() int64 { return int64(e.At) * grain }

// A Part is a sequence of entries. The zero Part is empty. It is not safe for concurrent use.
type Part struct {
	extents []Extent
	disk    uint64   // entries in extents or gone
	groups  []*Group // frozen, the oldest first; those being written come before the others
	tail    *buffer  // receives new entries; may be nil
	held    int      // entries in groups and tail
}

// A Group is frozen entries of a part that become one extent. It is not safe for concurrent use.
// [File.Write] reads only fields that do not change after [Part.Take].
type Group struct {
	Extent Extent // its place and size are valid once it is written
	Bucket uint64
	Magic  uint32

	part    *Part
	buffers []*buffer
	bytes   int
	taken   bool // it is being written
	done    bool // it has been written
	dead    bool // its part was dropped before the write ended
}

// NewPart returns a part whose entries are all on disk. Some of the count entries may be gone.
func NewPart(extents []Extent, count uint64) Part { return Part{extents: extents, disk: count} }

// Count returns how many entries were appended.
func (p *Part) Count() uint64 { return p.disk + uint64(p.held) }

// Extents returns the extents on disk. The slice must not be changed.
func (p *Part) Extents() []Extent { return p.extents }

// Buffered returns how many pages [Part.Take] would take.
func (p *Part) Buffered() (pages int) {
	for _, g := range p.groups {
		for _, b := range g.buffers {
			if !g.taken {
				pages += len(b.pages)
			}
		}
	}
	if p.tail != nil {
		pages += len(p.tail.pages)
	}
	return pages
}

// Append appends an entry of the given size, which fill must append to its argument. Append may use
// scratch as memory, and returns it.
func (p *Part) Append(pool *Pool, size int, scratch []byte, fill func([]byte) []byte) []byte {
	if p.tail == nil {
		p.tail = &buffer{}
	}
	p.held++
	// Nearly all entries are built in place, which saves a copy.
	if room := p.tail.extend(pool, size); room != nil {
		fill(room)
		return scratch
	}
	scratch = fill(scratch[:0])
	p.tail.append(pool, scratch)
	if p.tail.bytes >= extentSize-BlockSize {
		p.freeze()
	}
	return scratch
}

// freeze makes the tail a group.
func (p *Part) freeze() {
	if p.tail == nil || p.tail.count == 0 {
		return
	}
	p.groups = append(p.groups, &Group{
		part: p, buffers: []*buffer{p.tail}, bytes: p.tail.bytes,
		Extent: Extent{First: p.Count() - uint64(p.tail.count), Count: uint32(p.tail.count)},
	})
	p.tail = nil
}

// Take freezes the entries in memory and appends the groups to write to all. generation is that of
// the first checkpoint that includes them.
func (p *Part) Take(all []*Group, bucket uint64, magic, generation uint32) []*Group {
	p.freeze()
	kept := p.groups[:0]
	for _, g := range p.groups {
		var last *Group
		if n := len(kept); n > 0 {
			last = kept[n-1]
		}
		switch {
		case g.taken:
			kept = append(kept, g)
		case last != nil && last.taken && last.fresh(all) && last.bytes+g.bytes <= extentSize:
			last.buffers = append(last.buffers, g.buffers...)
			last.bytes += g.bytes
			last.Extent.Count += g.Extent.Count
		default:
			g.Bucket, g.Magic, g.Extent.Generation, g.taken = bucket, magic, generation, true
			kept, all = append(kept, g), append(all, g)
		}
	}
	p.groups = kept
	return all
}

// fresh reports whether a group is the last of all, and so is not being written yet.
func (g *Group) fresh(all []*Group) bool { return len(all) > 0 && all[len(all)-1] == g }

// Taken appends the groups of a part that are being written to all.
func (p *Part) Taken(all []*Group) []*Group {
	for _, g := range p.groups {
		if g.taken {
			all = append(all, g)
		}
	}
	return all
}

// Done reports whether a group has been written.
func (g *Group) Done() bool { return g.done }

// Adopt records that a group is on disk, and frees its memory. If its part was dropped, Adopt
// returns the space of the group.
func (g *Group) Adopt(pool *Pool, written Extent) (dropped Span) {
	g.Extent, g.done = written, true
	if g.dead {
		g.free(pool)
		return g.Extent.Span()
	}
	// Extents of a part are in order, but may be written in any order.
	p := g.part
	for len(p.groups) > 0 && p.groups[0].done {
		first := p.groups[0]
		p.extents = append(p.extents, first.Extent)
		p.disk += uint64(first.Extent.Count)
		p.held -= int(first.Extent.Count)
		p.groups = p.groups[1:]
		first.free(pool)
	}
	return dropped
}

func (g *Group) free(pool *Pool) {
	for _, b := range g.buffers {
		b.free(pool)
	}
	g.buffers = nil
}

// Clear drops all entries, and calls release for their space.
func (p *Part) Clear(pool *Pool, release func(Span)) {
	for _, e := range p.extents {
		release(e.Span())
	}
	p.freeze()
	for _, g := range p.groups {
		switch {
		case !g.taken:
			g.free(pool)
		case g.done:
			g.free(pool)
			release(g.Extent.Span())
		default:
			g.dead = true
		}
	}
	*p = Part{}
}

// Trim drops extents if gone reports that none of their entries is needed. The other entries keep
// their numbers.
func (p *Part) Trim(gone func(from, to uint64) bool, release func(Span)) {
	kept := make([]Extent, 0, len(p.extents)) // views share the old slice
	for _, e := range p.extents {
		if gone(e.First, e.First+uint64(e.Count)) {
			release(e.Span())
		} else {
			kept = append(kept, e)
		}
	}
	p.extents = kept
}

// View returns a copy of a part as it is now, which can be read while the part changes. The caller
// must release it.
func (p *Part) View() Part {
	const small = 64 << 10
	v := Part{extents: slices.Clip(p.extents), disk: p.disk, held: p.held}
	if p.tail != nil && p.tail.bytes > small {
		p.freeze() // cheaper than a copy
	}
	for _, g := range p.groups {
		v.groups = append(v.groups, &Group{
			buffers: slices.Clone(g.buffers), bytes: g.bytes, Extent: g.Extent,
		})
		for _, b := range g.buffers {
			b.pins++
		}
	}
	if p.tail != nil {
		v.tail = p.tail.clone()
	}
	return v
}

// Release ends the use of a view.
func (p *Part) Release() {
	for _, g := range p.groups {
		for _, b := range g.buffers {
			b.pins--
		}
	}
	*p = Part{}
}

// find returns the index of the first extent that ends after an entry.
func (p *Part) find(entry uint64) int {
	return sort.Search(len(p.extents), func(i int) bool {
		return p.extents[i].First+uint64(p.extents[i].Count) > entry
	})
}

// Bytes returns the approximate size of all entries.
func (p *Part) Bytes() (n int64) {
	for _, e := range p.extents {
		n += int64(e.Size)
	}
	for _, g := range p.groups {
		n += int64(g.bytes)
	}
	if p.tail != nil {
		n += int64(p.tail.bytes)
	}
	return n
}

// inMemory appends the block that holds an entry to dst, if it is in memory.
func (p *Part) inMemory(entry uint64, dst []byte) (Block, bool) {
	first := p.disk
	look := func(b *buffer) (Block, bool) {
		if entry >= first+uint64(b.count) {
			first += uint64(b.count)
			return Block{}, false
		}
		i := b.blockOf(int(entry - first))
		raw, count := b.block(i, dst)
		return Block{First: first + uint64(b.cuts[i].first), Count: uint32(count), Raw: raw}, true
	}
	for _, g := range p.groups {
		for _, b := range g.buffers {
			if found, ok := look(b); ok {
				return found, true
			}
		}
	}
	if p.tail != nil {
		return look(p.tail)
	}
	return Block{}, false
}
