package satstore

import (
	"fmt"
	"sort"
	"sync"
)

// A cursor reads the blocks of a bucket in order, an extent at a time.
type cursor struct {
	s      *Store
	bucket *bucket
	lock   sync.Locker // s.mu, if it is not held; then the cursor also reads ahead
	codec  codec
	raw    []byte // for the next block
	spare  []byte // for a copy of it

	extent extent // that data holds; its size is 0 if none
	data   []byte
	at     int    // of the next block in data
	first  uint64 // of the entries in that block

	ahead  extent
	result chan fetched
}

type fetched struct {
	data []byte
	err  error
}

// next returns the block that holds an entry, or the one after if that entry is gone together with
// others. The block is valid until the next call; its count is 0 at the end of the part.
func (c *cursor) next(p *part, entry uint64) (block, error) {
	e, following, found := c.locate(p, entry)
	if found.count > 0 || e.size == 0 {
		return found, nil
	}
	if e != c.extent {
		if err := c.fetch(e, following); err != nil {
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
			return block{}, &CorruptError{dataName, e.offset() + int64(c.at), reason}
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

// locate returns the extent that holds an entry, and the one after it, or else the block in memory.
func (c *cursor) locate(p *part, entry uint64) (e, following extent, found block) {
	if c.lock != nil {
		c.lock.Lock()
		defer c.lock.Unlock()
	}
	if c.bucket.dead {
		return e, following, found
	}
	if entry < p.disk {
		i := p.find(entry)
		if i < len(p.extents) {
			e = p.extents[i]
			if i+1 < len(p.extents) {
				following = p.extents[i+1]
			}
			return e, following, found
		}
	}
	n := max(entry, p.disk) - p.disk
	b := &p.buffer
	if n >= uint64(b.count) {
		return e, following, found
	}
	i := sort.Search(len(b.cuts), func(i int) bool { return uint64(b.cuts[i].first) > n }) - 1
	raw, count := b.block(c.s.pool, i, c.raw[:0])
	c.raw = raw
	found = block{
		magic: p.magic(c.bucket), bucket: c.bucket.id,
		first: p.disk + uint64(b.cuts[i].first), count: uint32(count), raw: raw,
	}
	return e, following, found
}

// find returns the first extent that ends after an entry.
func (p *part) find(entry uint64) int {
	return sort.Search(len(p.extents), func(i int) bool {
		return p.extents[i].first+uint64(p.extents[i].count) > entry
	})
}

// fetch makes data those of an extent, and begins to read the following one.
func (c *cursor) fetch(e, following extent) error {
	got, spare := fetched{}, c.data
	c.extent, c.data = extent{}, nil
	if c.result != nil {
		got = <-c.result
		c.result = nil
	}
	if got.data == nil || c.ahead != e {
		got.data, got.err = c.s.readExtent(spare, e)
		spare = nil
	}
	if got.err != nil {
		return got.err
	}
	c.data, c.extent, c.at, c.first = got.data, e, 0, e.first
	if c.lock != nil && following.size > 0 {
		c.ahead, c.result = following, make(chan fetched, 1)
		go func(result chan<- fetched) {
			data, err := c.s.readExtent(spare, following)
			result <- fetched{data, err}
		}(c.result)
	}
	return nil
}

// close waits for what is being read ahead.
func (c *cursor) close() {
	if c.result != nil {
		<-c.result
		c.result = nil
	}
}

// readExtent reads all of an extent, into b if that is large enough.
func (s *Store) readExtent(b []byte, e extent) ([]byte, error) {
	if cap(b) < int(e.size) {
		b = make([]byte, e.size)
	}
	b = b[:e.size]
	if err := readFull(s.data, dataName, b, e.offset()); err != nil {
		return nil, err
	}
	return b, nil
}

// badEntry says that a block is whole but makes no sense.
func (s *Store) badEntry(b *bucket, p *part, entry uint64) error {
	reason := fmt.Sprintf("entry %d of bucket %d makes no sense", entry, b.id)
	if i := p.find(entry); entry < p.disk && i < len(p.extents) {
		return &CorruptError{dataName, p.extents[i].offset(), reason}
	}
	return &CorruptError{dataName, 0, reason}
}
