package hattrie

import (
	"hash/maphash"
	"math/bits"
)

// A leaf is a hash table in one block:
//
//	0  header of the arena
//	4  number of records
//	6  where the last record ends
//	8  number of records in the tail
//	9  a byte of the hash of each record in the tail
//	   where each record of the tail begins, two bytes each
//	   of each bucket: where it begins, and its filter, two bytes each
//	   where the last bucket ends, two bytes
//	   the records of the buckets, bucket by bucket, then those of the tail
//
// A record is the length of the key, the key, and the value. The key lacks the part that the path
// from the root determines. A record is identified by its offset in the block; 0 means none.
//
// Packed buckets waste nothing, but adding a record to one moves half of the table. So new records
// go to the tail, a small area, until it is full. Then the leaf is rewritten, with the records of
// the tail in their buckets.
//
// In a trie of millions of keys a search mostly waits for memory: for the line of the table with
// its bucket, and for the bucket. The filter has two bits for each record in the bucket, so a
// search for an absent key rarely looks into one.
type leaf struct {
	block []byte
	level int // there are 2<<level buckets
	width int // of a value
}

const (
	leafCount = 4
	leafEnd   = 6
	leafTail  = 8
	leafTags  = 9

	// A leaf bursts beyond either limit. More records per leaf save memory, since there are fewer
	// nodes and keys share more bytes, and make Set slower.
	maxEntries = 256
	maxLeaf    = 16 << 10

	// A leaf has between a quarter and half of that many records per bucket.
	bucketLoad = 8
	maxLevel   = 5

	maxTail  = 8 // the tags are read as one word
	placesAt = leafTags + maxTail
	tableAt  = placesAt + 2*maxTail

	bucketSize = 4

	// longKey in place of a length says that the length is in the next two bytes.
	longKey = 255
)

func recordsAt(level int) int { return tableAt + bucketSize<<(level+1) + 2 }

// levelFor returns the level of a leaf with that many records.
func levelFor(records int) int {
	return min(bits.Len(uint(max(records-1, 0)/bucketLoad)), maxLevel)
}

func (t *tree) leaf(r ref) leaf {
	return leaf{t.arena.at(r.addr()), r.level(), t.width}
}

func (l leaf) count() int     { return int(le.Uint16(l.block[leafCount:])) }
func (l leaf) end() int       { return int(le.Uint16(l.block[leafEnd:])) }
func (l leaf) tail() int      { return int(l.block[leafTail]) }
func (l leaf) buckets() int   { return 2 << l.level }
func (l leaf) first() int     { return recordsAt(l.level) }
func (l leaf) tailBegin() int { return l.bound(l.buckets()) }

// bound returns where bucket i begins, which is where the one before ends.
func (l leaf) bound(i int) int           { return int(le.Uint16(l.block[l.bucketAt(i):])) }
func (l leaf) setBound(i, at int)        { le.PutUint16(l.block[l.bucketAt(i):], uint16(at)) }
func (l leaf) bucketAt(i int) int        { return tableAt + bucketSize*i }
func (l leaf) filter(i int) uint16       { return le.Uint16(l.block[l.bucketAt(i)+2:]) }
func (l leaf) setFilter(i int, f uint16) { le.PutUint16(l.block[l.bucketAt(i)+2:], f) }

// place returns where a record of the tail begins.
func (l leaf) place(i int) int      { return int(le.Uint16(l.block[placesAt+2*i:])) }
func (l leaf) setPlace(i, at int)   { le.PutUint16(l.block[placesAt+2*i:], uint16(at)) }
func (l leaf) setTag(i int, b byte) { l.block[leafTags+i] = b }

func (l leaf) setCount(count, tail, end int) {
	le.PutUint16(l.block[leafCount:], uint16(count))
	le.PutUint16(l.block[leafEnd:], uint16(end))
	l.block[leafTail] = byte(tail)
}

// recordSize returns the bytes of a record whose key has some length.
func recordSize(key, width int) int {
	if key >= longKey {
		key += 2
	}
	return 1 + key + width
}

// keyBounds returns where the key of a record is.
func (l leaf) keyBounds(rec int) (begin, end int) {
	begin, n := rec+1, int(l.block[rec])
	if n == longKey {
		n = int(le.Uint16(l.block[begin:]))
		begin += 2
	}
	return begin, begin + n
}

func (l leaf) key(rec int) []byte {
	begin, end := l.keyBounds(rec)
	return l.block[begin:end]
}

func (l leaf) value(rec int) []byte {
	_, end := l.keyBounds(rec)
	return l.block[end : end+l.width : end+l.width]
}

// next returns where the record behind another one begins.
func (l leaf) next(rec int) int {
	_, end := l.keyBounds(rec)
	return end + l.width
}

// records appends the places of all records to list.
func (l leaf) records(list []uint16) []uint16 {
	for rec := l.first(); rec < l.end(); rec = l.next(rec) {
		list = append(list, uint16(rec))
	}
	return list
}

// write writes a record with a key of two parts, and returns its value, to be filled in.
func (l leaf) write(rec int, lead, key []byte) (value []byte) {
	n, at := len(lead)+len(key), rec+1
	l.block[rec] = byte(min(n, longKey))
	if n >= longKey {
		le.PutUint16(l.block[at:], uint16(n))
		at += 2
	}
	at += copy(l.block[at:], lead)
	at += copy(l.block[at:], key)
	return l.block[at : at+l.width : at+l.width]
}

// hash is seeded, so nobody can choose keys that all fall into one bucket. The remaining part of a
// host name is short, and for short keys nothing is faster than the hash of Go's own maps.
func (t *tree) hash(key []byte) uint64 { return maphash.Bytes(t.seed, key) }

// A bucket is chosen by the upper bits of a hash, the tag is the lowest byte, and the bits of the
// filter are those above it.
func bucketOf(hash uint64, level int) int { return int(hash >> (63 - level)) }
func tagOf(hash uint64) byte              { return byte(hash) }
func bitsOf(hash uint64) uint16           { return 1<<(hash>>8&15) | 1<<(hash>>12&15) }

// find returns the record with a key, 0 if there is none.
func (l leaf) find(key []byte, hash uint64) int {
	at := l.bucketAt(bucketOf(hash, l.level))
	begin, end := le.Uint32(l.block[at:]), le.Uint16(l.block[at+bucketSize:])
	if want := bitsOf(hash); uint16(begin>>16)&want == want {
		for rec := int(begin & 0xffff); rec < int(end); {
			if n := int(l.block[rec]); n < longKey {
				if n == len(key) && string(l.block[rec+1:rec+1+n]) == string(key) {
					return rec
				}
				rec += 1 + n + l.width
				continue
			}
			if string(l.key(rec)) == string(key) {
				return rec
			}
			rec = l.next(rec)
		}
	}
	return l.findInTail(key, tagOf(hash))
}

// findInTail compares all tags at once, and looks at a record only if its tag fits.
func (l leaf) findInTail(key []byte, tag byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	x := le.Uint64(l.block[leafTags:]) ^ ones*uint64(tag)
	for zeros := (x - ones) &^ x & tops; zeros != 0; zeros &= zeros - 1 {
		place := bits.TrailingZeros64(zeros) / 8
		if place >= l.tail() {
			return 0
		}
		if rec := l.place(place); string(l.key(rec)) == string(key) {
			return rec
		}
	}
	return 0
}

// newLeaf returns an empty leaf with room for that many bytes of records, or 0 if there is no
// memory.
func (t *tree) newLeaf(level, room int) (ref, leaf) {
	addr := t.arena.alloc(recordsAt(level) + room)
	if addr == 0 {
		return 0, leaf{}
	}
	r := leafRef(addr, level)
	l := t.leaf(r)
	l.setCount(0, 0, l.first())
	for i := range l.buckets() {
		l.setBound(i, l.first())
		l.setFilter(i, 0)
	}
	l.setBound(l.buckets(), l.first())
	return r, l
}

// isFull reports whether a leaf has to burst before it can take another record.
func (l leaf) isFull(need int) bool {
	return l.count() >= maxEntries || l.end()+need > maxLeaf && l.count() > 1
}

// isTight reports whether a leaf has to be rewritten before it can take another record.
func (l leaf) isTight(need int) bool {
	return l.tail() == maxTail || l.end()+need > sizeOf(l.block)
}

// push adds a new key to a leaf that is neither full nor tight, and returns its value.
func (t *tree) push(l leaf, key []byte, hash uint64) (value []byte) {
	tail, rec := l.tail(), l.end()
	need := recordSize(len(key), t.width)
	l.setTag(tail, tagOf(hash))
	l.setPlace(tail, rec)
	l.setCount(l.count()+1, tail+1, rec+need)
	return l.write(rec, nil, key)
}

// remove takes a record out of the leaf in slot, and empties the slot if it was the last one.
func (t *tree) remove(slot []byte, l leaf, rec int) {
	count, tail, end := l.count()-1, l.tail(), l.end()
	if count == 0 {
		t.arena.free(getRef(slot).addr())
		setRef(slot, 0)
		return
	}
	gap := l.next(rec) - rec
	if rec >= l.tailBegin() {
		l.removePlace(rec, gap)
		tail--
	} else {
		for i := l.buckets(); l.bound(i) > rec; i-- {
			l.setBound(i, l.bound(i)-gap)
		}
		for i := range tail {
			l.setPlace(i, l.place(i)-gap)
		}
	}
	copy(l.block[rec:end-gap], l.block[rec+gap:end])
	l.setCount(count, tail, end-gap)
	t.trim(slot, l)
}

// removePlace removes a record from what the head of the leaf says of the tail.
func (l leaf) removePlace(rec, gap int) {
	kept := 0
	for i := range l.tail() {
		at := l.place(i)
		if at == rec {
			continue
		}
		if at > rec {
			at -= gap
		}
		l.setTag(kept, l.block[leafTags+i])
		l.setPlace(kept, at)
		kept++
	}
}
