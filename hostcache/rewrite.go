package hostcache

import "slices"

// rewrite makes the leaf that slot refers to one without a tail, with room for need bytes more and
// some slack, and of the level for so many records.
func (t *tree) rewrite(slot []byte, l leaf, records, need int) leaf {
	if levelFor(records) == l.level {
		return t.merge(slot, l, need)
	}
	var all [maxEntries]uint16
	old := getRef(slot)
	setRef(slot, t.build(l, l.records(all[:0]), 0, need))
	t.freeLeaf(old)
	return t.leaf(getRef(slot))
}

// records appends the places of all records to list.
func (l leaf) records(list []uint16) []uint16 {
	for rec := firstRecord; rec < l.end(); rec += l.recSize(rec) {
		list = append(list, uint16(rec))
	}
	return list
}

// slack returns how many bytes to leave free in a leaf: an eighth, as far as the tail can make use
// of it, since a leaf with more slack is written less often and wastes more.
func slack(records, bytes, level int) int {
	if records == 0 {
		return 0
	}
	places := min(max(records/8, 1), tailPlaces(level))
	return bytes * places / records
}

// merge puts the records of the tail into their buckets, in a new body. The buckets themselves are
// copied as they are, so only the keys of the tail are looked at.
func (t *tree) merge(slot []byte, l leaf, need int) leaf {
	begin, end := l.tailBegin(), l.end()

	// Each is a bucket and, below it, a record, so that they sort by bucket.
	var tail [maxTail]uint32
	waiting := tail[:0]
	for rec := begin; rec < end; rec += l.recSize(rec) {
		bucket := bucketOf(t.hash(t.key(l, rec)), l.level)
		waiting = append(waiting, uint32(bucket)<<16|uint32(rec))
	}
	slices.Sort(waiting)

	addr := t.bodies.alloc(end + max(need, slack(l.count(), end-firstRecord, l.level)))
	body := t.bodies.at(addr)
	from, to := firstRecord, firstRecord
	next := 0 // the first bound that is still the old one
	for _, w := range waiting {
		bucket, rec := int(w>>16), int(w&0xffff)
		// The bound behind this bucket is old, since waiting is sorted.
		until := l.bound(bucket + 1)
		next = l.moveBounds(next, bucket, to-from)
		to += copy(body[to:], l.body[from:until])
		from = until
		to += copy(body[to:], l.body[rec:rec+l.recSize(rec)])
	}
	l.moveBounds(next, l.buckets(), to-from)
	copy(body[to:], l.body[from:begin])

	old := getRef(slot)
	t.bodies.free(old.body())
	setRef(slot, leafRef(old.addr(), addr, l.level))
	l.body = body
	l.setRoom()
	l.setCount(l.count(), 0, end)
	return l
}

// moveBounds moves the bounds from one bucket to another, both included, and returns the next one.
func (l leaf) moveBounds(first, last, by int) int {
	for i := first; i <= last; i++ {
		l.setBound(i, l.bound(i)+by)
	}
	return last + 1
}

// build returns a leaf of some records of another one, less the first strip bytes of their keys.
func (t *tree) build(from leaf, records []uint16, strip, need int) ref {
	level := levelFor(len(records) + b2i(need > 0))
	var bucket [maxEntries]uint8
	var bound [1<<maxLevel + 1]int
	bytes := 0
	for i, rec := range records {
		key := t.key(from, int(rec))[strip:]
		b := bucketOf(t.hash(key), level)
		n := from.recSize(int(rec))
		if from.body[rec] != longKey {
			n -= strip
		}
		bucket[i] = uint8(b)
		bound[b+1] += n
		bytes += n
	}
	r, l := t.newLeaf(level, bytes+max(need, slack(len(records), bytes, level)))
	l.setCount(len(records), 0, firstRecord+bytes)
	bound[0] = firstRecord
	for i := range l.buckets() {
		bound[i+1] += bound[i]
		l.setBound(i+1, bound[i+1])
	}
	for i, rec := range records {
		to := &bound[bucket[i]]
		*to += t.copyRecord(l, *to, from, int(rec), strip)
	}
	return r
}

// copyRecord writes a record of another leaf, less the first strip bytes of its key, and returns
// its size.
func (t *tree) copyRecord(l leaf, to int, from leaf, rec, strip int) int {
	if from.body[rec] == longKey {
		number, skip := from.long(rec)
		l.putLong(to, number, skip+uint32(strip))
	} else {
		key := t.key(from, rec)[strip:]
		l.body[to] = byte(len(key))
		copy(l.body[to+1:], key)
	}
	copy(l.value(to), from.value(rec))
	return l.recSize(to)
}

// burst replaces the leaf that slot refers to by a node with a leaf for each first byte of its
// keys. What all keys begin with becomes the prefix of the node, so that long common prefixes
// cost nothing twice.
func (t *tree) burst(slot []byte, l leaf) {
	var space, sorted [maxEntries]uint16
	all := l.records(space[:0])
	prefix := t.commonPrefixOf(l, all)

	var begin [257]int // of the records with each byte behind the prefix, after they are sorted
	ends := 0          // the record that has no such byte
	for _, rec := range all {
		if key := t.key(l, int(rec)); len(key) == len(prefix) {
			ends = int(rec)
		} else {
			begin[int(key[len(prefix)])+1]++
		}
	}
	children := 0
	for c := range 256 {
		children += b2i(begin[c+1] > 0)
		begin[c+1] += begin[c]
	}
	place := begin
	for _, rec := range all {
		if key := t.key(l, int(rec)); len(key) > len(prefix) {
			c := key[len(prefix)]
			sorted[place[c]] = rec
			place[c]++
		}
	}

	r, n := t.newNode(prefix, children)
	for c := range 256 {
		if group := sorted[begin[c]:begin[c+1]]; len(group) > 0 {
			setRef(n.open(byte(c)), t.build(l, group, len(prefix)+1, 0))
		}
	}
	if ends != 0 {
		n.addValue()
		copy(n.value(), l.value(ends))
		t.dropLong(l, ends)
	}
	t.freeLeaf(getRef(slot))
	setRef(slot, r)
}

// commonPrefixOf returns what all keys of a leaf begin with, as far as it fits into a node.
func (t *tree) commonPrefixOf(l leaf, records []uint16) []byte {
	prefix := t.key(l, int(records[0]))
	prefix = prefix[:min(len(prefix), maxPrefix)]
	for _, rec := range records[1:] {
		prefix = prefix[:commonPrefix(prefix, t.key(l, int(rec)))]
	}
	return prefix
}
