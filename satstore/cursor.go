package satstore

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// A cursor reads the blocks of a bucket in order, an extent at a time.
type cursor struct {
	s      *Store
	bucket *bucket
	lock   sync.Locker // s.mu, if it is not held
	async  bool        // it reads ahead, and has to be closed unless it is Due's
	codec  codec
	raw    []byte // for the next block
	spare  []byte // for a copy of it

	extent extent // that data holds; its size is 0 if none
	data   []byte
	at     int    // of the next block in data
	first  uint64 // of the entries in that block

	following []extent // of those that come next, as many as are worth reading ahead
	ahead     []*fetch // in their order
	free      [][]byte // memory for others
}

// A fetch is an extent on its way from the disk.
type fetch struct {
	extent extent
	data   []byte
	err    error
	done   chan struct{} // closed when there is one or the other
}

// readAhead is how many extents are read at once, and aheadBytes when they are enough.
const (
	readAhead  = 4
	aheadBytes = 2 * extentSize
)

// next returns the block that holds an entry, or the one after if that entry is gone together with
// others. The block is valid until the next call; its count is 0 at the end of the part.
func (c *cursor) next(p *part, entry uint64) (block, error) {
	e, found := c.locate(p, entry)
	for found.count == 0 && e.size > 0 {
		read, err := c.read(p, e, entry)
		if err == nil || c.lock == nil {
			return read, err
		}
		// Nobody is kept from giving back meanwhile what is in the extent. After a checkpoint its room
		// is free, and what was read there may be a part of something else.
		was := e
		if e, found = c.locate(p, entry); e == was {
			return block{}, err
		}
	}
	return found, nil
}

// read returns the block of an extent that holds an entry, or the one after.
func (c *cursor) read(p *part, e extent, entry uint64) (block, error) {
	if e != c.extent {
		if err := c.fetch(e); err != nil {
			return block{}, err
		}
	} else if entry < c.first {
		c.at, c.first = 0, e.first
	}
	for {
		found, size, reason := c.codec.decode(c.raw, c.data[c.at:])
		if reason == "" && (found.bucket != c.bucket.id || found.first != c.first ||
			found.magic != p.magic(c.bucket) || found.count == 0) {
			reason = "a block of another place"
		}
		if reason != "" {
			c.extent = extent{} // who tries again reads it again
			return block{}, disk.Corrupt(dataName, e.offset()+int64(c.at), reason)
		}
		c.raw = found.raw
		c.at += size
		c.first += uint64(found.count)
		if entry < c.first {
			return found, nil
		}
	}
}

// magic tells which of a bucket's parts p is.
func (p *part) magic(b *bucket) uint32 {
	if p == &b.messages {
		return messageMagic
	}
	return recordsMagic
}

// locate returns the extent that holds an entry, or else the block in memory. It notes which
// extents follow.
func (c *cursor) locate(p *part, entry uint64) (e extent, found block) {
	if c.lock != nil {
		c.lock.Lock()
		defer c.lock.Unlock()
	}
	if c.bucket.dead {
		return e, found
	}
	if entry < p.disk {
		if i := p.find(entry); i < len(p.extents) {
			c.follow(p.extents[i+1:])
			return p.extents[i], found
		}
	}
	b, first := p.inMemory(max(entry, p.disk))
	n := max(entry, p.disk) - first
	if n >= uint64(b.count) {
		return e, found
	}
	i := sort.Search(len(b.cuts), func(i int) bool { return uint64(b.cuts[i].first) > n }) - 1
	raw, count := b.block(c.s.pool, i, c.raw[:0])
	c.raw = raw
	found = block{
		magic: p.magic(c.bucket), bucket: c.bucket.id,
		first: first + uint64(b.cuts[i].first), count: uint32(count), raw: raw,
	}
	return e, found
}

// follow notes which extents follow. After the last of a slot, those of the next one do: else each
// slot would begin with waiting for the disk. Only Due goes on to the next slot, and only there is
// the lock known to be held: a Scan or a Get reads copies, while others change the calendar.
func (c *cursor) follow(rest []extent) {
	c.following = append(c.following[:0], rest[:min(readAhead-1, len(rest))]...)
	if c.lock == nil {
		return
	}
	if next := c.s.calendar.next(); next != nil {
		rest = next.records.extents
		n := min(readAhead-1-len(c.following), len(rest))
		c.following = append(c.following, rest[:n]...)
	}
}

// find returns the first extent that ends after an entry.
func (p *part) find(entry uint64) int {
	return sort.Search(len(p.extents), func(i int) bool {
		return p.extents[i].first+uint64(p.extents[i].count) > entry
	})
}

// fetch makes data those of an extent, and begins to read those that follow.
func (c *cursor) fetch(e extent) error {
	if c.data != nil {
		c.free = append(c.free, c.data)
	}
	c.extent, c.data = extent{}, nil
	for len(c.ahead) > 0 && c.ahead[0].extent != e {
		c.drop() // it has gone meanwhile
	}
	if len(c.ahead) == 0 {
		c.begin(e)
	}
	c.readOn()
	f := c.ahead[0]
	c.ahead = c.ahead[1:]
	if <-f.done; f.err != nil {
		return f.err
	}
	c.data, c.extent, c.at, c.first = f.data, e, 0, e.first
	return nil
}

// readOn begins to read what follows.
func (c *cursor) readOn() {
	size := 0
	for _, f := range c.ahead {
		size += int(f.extent.size)
	}
	for _, e := range c.following {
		if !c.async || size >= aheadBytes {
			return
		}
		if !slices.ContainsFunc(c.ahead, func(f *fetch) bool { return f.extent == e }) {
			c.begin(e)
			size += int(e.size)
		}
	}
}

// begin begins to read an extent.
func (c *cursor) begin(e extent) {
	f := &fetch{extent: e, done: make(chan struct{})}
	if n := len(c.free); n > 0 {
		f.data, c.free = c.free[n-1], c.free[:n-1]
	}
	c.ahead = append(c.ahead, f)
	read := func() {
		f.data, f.err = c.s.readExtent(f.data, e)
		close(f.done)
	}
	if !c.async {
		read()
	} else {
		go read()
	}
}

// drop waits for the first of those that are being read, and forgets it.
func (c *cursor) drop() {
	f := c.ahead[0]
	c.ahead = c.ahead[1:]
	if <-f.done; f.data != nil {
		c.free = append(c.free, f.data)
	}
}

// close waits for what is being read ahead.
func (c *cursor) close() {
	for len(c.ahead) > 0 {
		c.drop()
	}
}

// readExtent reads all of an extent, into b if that is large enough.
func (s *Store) readExtent(b []byte, e extent) ([]byte, error) {
	if cap(b) < int(e.size) {
		// The next one may be larger, up to what is kept of a small bucket, of which there are many.
		room := blockSize
		for room/2 >= int(e.size) && room > grain {
			room /= 2
		}
		b = make([]byte, (int(e.size)+room-1)&^(room-1))
	}
	b = b[:e.size]
	if err := disk.ReadFull(s.data, dataName, b, e.offset()); err != nil {
		return nil, err
	}
	return b, nil
}

// badEntry says that a block is whole but makes no sense.
func (s *Store) badEntry(b *bucket, p *part, entry uint64) error {
	reason := fmt.Sprintf("entry %d of bucket %d makes no sense", entry, b.id)
	if i := p.find(entry); entry < p.disk && i < len(p.extents) {
		return disk.Corrupt(dataName, p.extents[i].offset(), reason)
	}
	return disk.Corrupt(dataName, 0, reason)
}
