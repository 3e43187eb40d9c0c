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
		hash := t.hash(t.key(l, rec))
		bucket := bucketOf(hash, l.level)
		l.setFilter(bucket, l.filter(bucket)|bitsOf(hash))
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
	var filter [2 << maxLevel]uint16
	var bound [2<<maxLevel + 1]int
	bytes := 0
	for i, rec := range records {
		key := t.key(from, int(rec))[strip:]
		hash := t.hash(key)
		b := bucketOf(hash, level)
		n := from.recSize(int(rec))
		if from.body[rec] != longKey {
			n -= strip
		}
		bucket[i] = uint8(b)
		filter[b] |= bitsOf(hash)
		bound[b+1] += n
		bytes += n
	}
	r, l := t.newLeaf(level, bytes+max(need, slack(len(records), bytes, level)))
	l.setCount(len(records), 0, firstRecord+bytes)
	bound[0] = firstRecord
	for i := range l.buckets() {
		bound[i+1] += bound[i]
		l.setBound(i+1, bound[i+1])
		l.setFilter(i, filter[i])
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

// burst makes two of the leaf that slot refers to, or puts a node in its place. The leaf is a child
// of the node that parent refers to; if that is nil, it is the root.
func (t *tree) burst(parent, slot []byte, l leaf) {
	var space [maxEntries]uint16
	all := l.records(space[:0])
	if parent != nil {
		if c := t.middle(l, all, 0); c > 0 {
			t.halve(parent, l, all, c)
			return
		}
	}
	t.deepen(parent, slot, l, all)
}

// middle returns the byte that best halves some records of a leaf by what their keys have at a
// place: those with bytes below it, and the others. It returns 0 if they all have the same byte.
func (t *tree) middle(l leaf, records []uint16, at int) byte {
	var with [256]int
	for _, rec := range records {
		with[t.key(l, int(rec))[at]]++
	}
	best, most, below := 0, len(records), 0
	for c := 1; c < 256; c++ {
		below += with[c-1]
		if larger := max(below, len(records)-below); larger < most {
			best, most = c, larger
		}
	}
	return byte(best)
}

// parted moves the records whose keys have a byte below c at a place before the others.
func (t *tree) parted(l leaf, records []uint16, at int, c byte) (below, others []uint16) {
	k := 0
	for i, rec := range records {
		if t.key(l, int(rec))[at] < c {
			records[i], records[k] = records[k], rec
			k++
		}
	}
	return records[:k], records[k:]
}

// halve gives the records from byte c on to a new child of the node that parent refers to.
func (t *tree) halve(parent []byte, l leaf, records []uint16, c byte) {
	below, others := t.parted(l, records, 0, c)
	n := t.roomFor(parent, 1)
	n.open(c)
	slot := n.slot(n.index(c - 1))
	old := getRef(slot)
	setRef(slot, t.build(l, below, 0, 0))
	setRef(n.slot(n.index(c)), t.build(l, others, 0, 0))
	t.freeLeaf(old)
}

// deepen replaces a leaf by a node. What all keys begin with becomes the prefix of the node, so
// that long common prefixes cost nothing twice. What is too long for one node gets a chain of them
// at once: a burst for each would read all of every key again.
func (t *tree) deepen(parent, slot []byte, l leaf, records []uint16) {
	old := getRef(slot)
	lead := b2i(parent != nil)
	prefix := t.commonPrefixOf(l, records, lead)
	strip := lead + len(prefix)
	above := len(prefix) / chainStep * chainStep
	r, n := t.newNode(prefix[above:], 2)
	records = t.keepEnd(n, l, records, strip)

	n.open(0)
	c := t.middle(l, records, strip)
	below, others := t.parted(l, records, strip, c)
	if c > 0 {
		n.open(c)
		setRef(n.slot(0), t.build(l, below, strip, 0))
	}
	setRef(n.slot(n.index(c)), t.build(l, others, strip, 0))
	r = t.chain(prefix[:above], r)

	if parent != nil {
		slot = t.isolate(parent, t.key(l, int(others[0]))[0])
	}
	setRef(slot, r)
	t.freeLeaf(old)
}

// chainStep is what a node of a chain says of a key: its prefix, and the byte of its child.
const chainStep = maxPrefix + 1

// chain puts nodes that say a path above a node, and returns the first one. It requires a path of
// whole steps.
func (t *tree) chain(path []byte, r ref) ref {
	for end := len(path); end > 0; end -= chainStep {
		above, child := t.nodeAbove(path[end-chainStep:end-1], path[end-1])
		setRef(child, r)
		r = above
	}
	return r
}

// keepEnd gives a node the value of the record whose key ends there, after so many bytes. It
// returns the other ones.
func (t *tree) keepEnd(n node, l leaf, records []uint16, length int) (others []uint16) {
	for i, rec := range records {
		if len(t.key(l, int(rec))) == length {
			n.addValue()
			copy(n.value(), l.value(int(rec)))
			t.dropLong(l, int(rec))
			last := len(records) - 1
			records[i] = records[last]
			return records[:last]
		}
	}
	return records
}

// commonPrefixOf returns what all keys of some records have behind their first skip bytes.
func (t *tree) commonPrefixOf(l leaf, records []uint16, skip int) []byte {
	prefix := t.key(l, int(records[0]))[skip:]
	for _, rec := range records[1:] {
		prefix = prefix[:commonPrefix(prefix, t.key(l, int(rec))[skip:])]
	}
	return prefix
}
