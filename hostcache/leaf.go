package hostcache

import (
	"hash/maphash"
	"math/bits"
)

// A leaf is a hash table in two blocks. The head lies among the nodes:
//
//	0  header of the arena
//	4  number of records
//	6  where the last record ends
//	8  number of records in the tail
//	9  a byte of the hash for each place in the tail
//	   where each bucket begins, and where the last one ends, two bytes each
//
// The body has the records of the buckets, packed, bucket by bucket, and then those of the tail in
// the order of their arrival. A record is the length of the rest of its key, that rest, and the
// value. It is known by where in the body it begins; 0 is none.
//
// Packed buckets waste nothing, but a record can only be put into one by moving half of the table;
// so new records wait in the tail, which is small, until there is no more room. Then the leaf is
// written anew, with the records of the tail in their buckets.
//
// A search in many millions of records is waiting for memory, and little else. Heads take some two
// bytes per record, so those of a few millions stay in the processor's cache, and a search waits for
// the bucket alone; in a bigger tree it waits for one line of the head, too. A filter has two bits
// for each record of its bucket, so that a search for a key that is not there, and so the adding of
// a new one, mostly does without the body.
type leaf struct {
	head, body []byte
	level      int // there are 2<<level buckets
	width      int
}

const (
	leafCount = 4
	leafEnd   = 6
	leafTail  = 8
	leafRoom  = 9
	leafTags  = 11

	// firstRecord is where a body's first record is.
	firstRecord = 4

	// A leaf bursts beyond either of these. More records to a leaf save memory, as there are fewer
	// nodes and each one has taken more bytes off the keys, and make puts slower. Places in a block
	// are numbers of 16 bits.
	maxEntries = 1024
	maxLeaf    = 60 << 10

	// bucketLoad bounds the records per bucket when a leaf is written.
	bucketLoad = 4
	maxLevel   = 7

	maxTail = 32

	// longKey in place of a length says that the rest of the key is not here but with the longs:
	// its number follows, and how many of its bytes the path has said since. It stays there when
	// the path has said so many that it would fit in here: leaves must not grow by bursting.
	longKey  = 255
	longSize = 8
)

// tailPlaces returns how many records a tail can have. It is a multiple of eight, so that the tags
// can be read as words.
func tailPlaces(level int) int { return max(8, maxTail>>(maxLevel-level)) }

func placesAt(level int) int { return leafTags + tailPlaces(level) }

func tableAt(level int) int { return leafTags + 3*tailPlaces(level) }

// bucketSize is what a bucket takes in the table.
const bucketSize = 4

func headSize(level int) int { return tableAt(level) + bucketSize<<(level+1) + 2 }

// levelFor returns the level for so many records.
func levelFor(records int) int {
	return min(bits.Len(uint(max(records-1, 0)/bucketLoad)), maxLevel)
}

func (t *tree) leaf(r ref) leaf {
	return leaf{t.heads.at(r.addr()), t.bodies.at(r.body()), r.level(), t.width}
}

func (l leaf) count() int     { return int(le.Uint16(l.head[leafCount:])) }
func (l leaf) end() int       { return int(le.Uint16(l.head[leafEnd:])) }
func (l leaf) tail() int      { return int(l.head[leafTail]) }
func (l leaf) buckets() int   { return 2 << l.level }
func (l leaf) tailBegin() int { return l.bound(l.buckets()) }

// bound returns where bucket i begins, and where the one before it ends.
func (l leaf) bound(i int) int { return int(le.Uint16(l.head[l.bucketAt(i):])) }

func (l leaf) setBound(i, at int) { le.PutUint16(l.head[l.bucketAt(i):], uint16(at)) }

func (l leaf) bucketAt(i int) int { return tableAt(l.level) + bucketSize*i }

// filter returns the bits of the records that are or were in a bucket since it was built.
func (l leaf) filter(i int) uint16 { return le.Uint16(l.head[l.bucketAt(i)+2:]) }

func (l leaf) setFilter(i int, f uint16) { le.PutUint16(l.head[l.bucketAt(i)+2:], f) }

// place returns where a record of the tail begins.
func (l leaf) place(i int) int { return int(le.Uint16(l.head[placesAt(l.level)+2*i:])) }

func (l leaf) setPlace(i, at int) { le.PutUint16(l.head[placesAt(l.level)+2*i:], uint16(at)) }

// room returns the size of the body. That is also in the body, but there it is far away.
func (l leaf) room() int { return int(le.Uint16(l.head[leafRoom:])) * unit }

func (l leaf) setRoom() { le.PutUint16(l.head[leafRoom:], uint16(size(l.body)/unit)) }

func (l leaf) setCount(count, tail, end int) {
	le.PutUint16(l.head[leafCount:], uint16(count))
	le.PutUint16(l.head[leafEnd:], uint16(end))
	l.head[leafTail] = byte(tail)
}

// stored returns the bytes that a key of so many bytes takes in a record.
func stored(length int) int {
	if length >= longKey {
		return longSize
	}
	return length
}

func (l leaf) storedKey(rec int) int {
	if n := int(l.body[rec]); n != longKey {
		return n
	}
	return longSize
}

func (l leaf) recSize(rec int) int { return 1 + l.storedKey(rec) + l.width }

func (l leaf) value(rec int) []byte {
	at := rec + 1 + l.storedKey(rec)
	return l.body[at : at+l.width : at+l.width]
}

// key returns the rest of a record's key.
func (t *tree) key(l leaf, rec int) []byte {
	n := int(l.body[rec])
	if n == longKey {
		number, skip := l.long(rec)
		return t.longs.keys[number][skip:]
	}
	return l.body[rec+1 : rec+1+n]
}

func (l leaf) long(rec int) (number, skip uint32) {
	return le.Uint32(l.body[rec+1:]), le.Uint32(l.body[rec+5:])
}

// hash is seeded, so that nobody can send names that all end up in one bucket. What is left of a
// host name is short, and for short keys nothing is faster than the hash of Go's own maps, which
// uses the processor's AES instructions.
func (t *tree) hash(key []byte) uint64 { return maphash.Bytes(t.seed, key) }

// bucketOf takes the upper bits of a hash, tagOf the lowest ones, bitsOf, which is for the filter,
// those above them.
func bucketOf(hash uint64, level int) int { return int(hash >> (63 - level)) }
func tagOf(hash uint64) byte              { return byte(hash) }
func bitsOf(hash uint64) uint16           { return 1<<(hash>>8&15) | 1<<(hash>>12&15) }

// find returns the record of a key with a hash, 0 if there is none.
func (t *tree) find(l leaf, key []byte, hash uint64) int {
	// One load fetches both ends of the bucket and its filter.
	at := l.bucketAt(bucketOf(hash, l.level))
	begin, end := le.Uint32(l.head[at:]), le.Uint16(l.head[at+bucketSize:])
	if want := bitsOf(hash); uint16(begin>>16)&want == want {
		if rec := t.findBetween(l, key, int(begin&0xffff), int(end)); rec != 0 {
			return rec
		}
	}
	return t.findInTail(l, key, tagOf(hash))
}

func (t *tree) findBetween(l leaf, key []byte, rec, end int) int {
	b := l.body
	for rec < end {
		n := int(b[rec])
		switch {
		case n == longKey:
			if string(t.key(l, rec)) == string(key) {
				return rec
			}
			n = longSize
		case n == len(key) && string(b[rec+1:rec+1+n]) == string(key):
			return rec
		}
		rec += 1 + n + l.width
	}
	return 0
}

// findInTail compares eight tags at a time, and looks at a record only if its tag fits.
func (t *tree) findInTail(l leaf, key []byte, tag byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	tail := l.tail()
	for i := 0; i < tail; i += 8 {
		x := le.Uint64(l.head[leafTags+i:]) ^ ones*uint64(tag)
		for zeros := (x - ones) &^ x & tops; zeros != 0; zeros &= zeros - 1 {
			place := i + bits.TrailingZeros64(zeros)/8
			if place >= tail {
				return 0
			}
			rec := l.place(place)
			if found := t.findBetween(l, key, rec, rec+1); found != 0 {
				return found
			}
		}
	}
	return 0
}

// newLeaf returns an empty leaf with room for so many bytes of records.
func (t *tree) newLeaf(level, room int) (ref, leaf) {
	r := leafRef(t.heads.alloc(headSize(level)), t.bodies.alloc(firstRecord+room), level)
	l := t.leaf(r)
	l.setCount(0, 0, firstRecord)
	l.setRoom()
	for i := range l.buckets() {
		l.setBound(i, firstRecord)
		l.setFilter(i, 0)
	}
	l.setBound(l.buckets(), firstRecord)
	return r, l
}

func (t *tree) freeLeaf(r ref) {
	t.bodies.free(r.body())
	t.heads.free(r.addr())
}

// recordSize returns what a record with a key takes.
func (t *tree) recordSize(key []byte) int { return 1 + stored(len(key)) + t.width }

// push adds a key with a hash that is not there yet to the leaf that slot refers to, and returns its
// value. It returns nil if the leaf has to burst first.
func (t *tree) push(slot []byte, l leaf, key []byte, hash uint64) (value []byte) {
	need := t.recordSize(key)
	if l.count() >= maxEntries || l.end()+need > maxLeaf && l.count() > 1 {
		return nil
	}
	if l.tail() == tailPlaces(l.level) || l.end()+need > l.room() {
		l = t.rewrite(slot, l, l.count()+1, need)
	}
	tail, rec := l.tail(), l.end()
	l.head[leafTags+tail] = tagOf(hash)
	l.setPlace(tail, rec)
	l.setCount(l.count()+1, tail+1, rec+need)
	if len(key) < longKey {
		l.body[rec] = byte(len(key))
		copy(l.body[rec+1:], key)
	} else {
		l.putLong(rec, t.longs.add(key), 0)
	}
	// This is l.value(rec), without reading what was just written: the memory is still far away.
	return l.body[rec+need-t.width : rec+need : rec+need]
}

func (l leaf) putLong(rec int, number, skip uint32) {
	l.body[rec] = longKey
	le.PutUint32(l.body[rec+1:], number)
	le.PutUint32(l.body[rec+5:], skip)
}

// remove takes a record out of the leaf that slot refers to, and empties the slot if it was the
// last one.
func (t *tree) remove(slot []byte, l leaf, rec int) {
	t.dropLong(l, rec)
	count, tail, end := l.count()-1, l.tail(), l.end()
	if count == 0 {
		t.freeLeaf(getRef(slot))
		setRef(slot, 0)
		return
	}
	gap := l.recSize(rec)
	if rec >= l.tailBegin() {
		l.dropPlace(rec, gap)
		tail--
	} else {
		for i := l.buckets(); l.bound(i) > rec; i-- {
			l.setBound(i, l.bound(i)-gap)
		}
		for i := range tail {
			l.setPlace(i, l.place(i)-gap)
		}
	}
	copy(l.body[rec:end-gap], l.body[rec+gap:end])
	l.setCount(count, tail, end-gap)
	if spare := l.room() - (end - gap); spare > 4*unit && spare > l.room()/4 {
		t.rewrite(slot, l, count, 0)
	}
}

// dropPlace takes a record out of what the head says of the tail. Those behind it move up.
func (l leaf) dropPlace(rec, gap int) {
	tail, kept := l.tail(), 0
	for i := range tail {
		at := l.place(i)
		if at == rec {
			continue
		}
		if at > rec {
			at -= gap
		}
		l.head[leafTags+kept] = l.head[leafTags+i]
		l.setPlace(kept, at)
		kept++
	}
}

// dropLong forgets the key of a record if it is a long one.
func (t *tree) dropLong(l leaf, rec int) {
	if l.body[rec] == longKey {
		number, _ := l.long(rec)
		t.longs.drop(number)
	}
}

// longs are the keys of which a leaf would have to hold so many bytes that their length does not
// fit into one. Each has an allocation of its own. Host names do not get that long.
type longs struct {
	keys  [][]byte
	free  []uint32
	bytes int
}

const longOverhead = 24 + 4 // the slice, and its number in the list

func (ls *longs) add(key []byte) uint32 {
	kept := append(make([]byte, 0, len(key)), key...)
	ls.bytes += len(key) + longOverhead
	if k := len(ls.free); k > 0 {
		number := ls.free[k-1]
		ls.free = ls.free[:k-1]
		ls.keys[number] = kept
		return number
	}
	ls.keys = append(ls.keys, kept)
	return uint32(len(ls.keys) - 1)
}

func (ls *longs) drop(number uint32) {
	ls.bytes -= len(ls.keys[number]) + longOverhead
	ls.keys[number] = nil
	ls.free = append(ls.free, number)
	if len(ls.free) == len(ls.keys) {
		*ls = longs{} // the lists are as long as they ever were
	}
}
