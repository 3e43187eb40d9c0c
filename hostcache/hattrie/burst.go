package hattrie

import "slices"

// These functions replace leaves. If there is no memory for new ones, they change nothing, and
// report ok as false or return the ref 0.

// rewrite replaces the leaf in slot by one without a tail, with room for need more bytes and some
// slack, and of the right level for one more record.
func (t *tree) rewrite(slot []byte, l leaf, need int) (ok bool) {
	if levelFor(l.count()+min(need, 1)) == l.level {
		return t.merge(slot, l, need)
	}
	var all [maxEntries]uint16
	return t.replace(slot, t.build(need, run{from: l, records: l.records(all[:0])}))
}

// replace frees the leaf in slot and puts another one there.
func (t *tree) replace(slot []byte, r ref) (ok bool) {
	if r == 0 {
		return false
	}
	t.arena.free(getRef(slot).addr())
	setRef(slot, r)
	return true
}

// discard frees a leaf that was built in vain.
func (t *tree) discard(refs ...ref) (ok bool) {
	for _, r := range refs {
		if r != 0 {
			t.arena.free(r.addr())
		}
	}
	return false
}

// slack returns how many bytes to leave free in a leaf: an eighth, as far as the tail can use it.
// With more slack a leaf is rewritten less often, and wastes more.
func slack(records, bytes int) int {
	return bytes * min(records/8+1, maxTail) / max(records, 1)
}

// merge rewrites a leaf that keeps its level. The buckets are copied as they are, so only the keys
// of the tail are hashed.
func (t *tree) merge(slot []byte, l leaf, need int) (ok bool) {
	begin, end := l.tailBegin(), l.end()
	room := max(need, slack(l.count(), end-l.first()))
	addr := t.arena.alloc(end + room)
	if addr == 0 {
		return false
	}

	// Each is a bucket and, in the lower half, a record: they are sorted by bucket.
	var space [maxTail]uint32
	tail := space[:0]
	for rec := begin; rec < end; rec = l.next(rec) {
		hash := t.hash(l.key(rec))
		bucket := bucketOf(hash, l.level)
		l.setFilter(bucket, l.filter(bucket)|bitsOf(hash))
		tail = append(tail, uint32(bucket)<<16|uint32(rec))
	}
	slices.Sort(tail)

	to := leaf{t.arena.at(addr), l.level, l.width}
	copy(to.block[leafCount:], l.block[leafCount:l.first()])
	from, at := l.first(), l.first()
	done := 0 // bounds that have been written
	for _, w := range tail {
		bucket, rec := int(w>>16), int(w&0xffff)
		done = to.moveBounds(done, bucket, at-from)
		until := l.bound(bucket + 1)
		at += copy(to.block[at:], l.block[from:until])
		at += copy(to.block[at:], l.block[rec:l.next(rec)])
		from = until
	}
	to.moveBounds(done, l.buckets(), at-from)
	copy(to.block[at:], l.block[from:begin])
	to.setCount(l.count(), 0, end)
	return t.replace(slot, leafRef(addr, l.level))
}

// moveBounds moves the bounds from one bucket to another, both included, and returns the next one.
func (l leaf) moveBounds(first, last, by int) int {
	for i := first; i <= last; i++ {
		l.setBound(i, l.bound(i)+by)
	}
	return last + 1
}

// A run is some records of a leaf that are copied to another one. Their keys lose some bytes, and
// get others instead.
type run struct {
	from    leaf
	records []uint16
	strip   int
	lead    []byte
}

// size returns what a record of the run takes when it is copied.
func (r run) size(rec uint16) int {
	begin, end := r.from.keyBounds(int(rec))
	return recordSize(len(r.lead)+end-begin-r.strip, r.from.width)
}

// build returns a leaf of the records of some runs, with room for need more bytes and some slack.
func (t *tree) build(need int, runs ...run) ref {
	count := 0
	for _, r := range runs {
		count += len(r.records)
	}
	level := levelFor(count + min(need, 1))
	var bucket [maxEntries]uint8
	var filter [2 << maxLevel]uint16
	var bound [2<<maxLevel + 1]int // at first, the size of each bucket
	bytes, i := 0, 0
	var space [256]byte
	key := space[:0]
	for _, r := range runs {
		for _, rec := range r.records {
			rest := r.from.key(int(rec))[r.strip:]
			if len(r.lead) > 0 {
				key = append(append(key[:0], r.lead...), rest...)
				rest = key
			}
			hash := t.hash(rest)
			b, n := bucketOf(hash, level), r.size(rec)
			bucket[i] = uint8(b)
			filter[b] |= bitsOf(hash)
			bound[b+1] += n
			bytes += n
			i++
		}
	}
	ref, l := t.newLeaf(level, bytes+max(need, slack(count, bytes)))
	if ref == 0 {
		return 0
	}
	l.setCount(count, 0, l.first()+bytes)
	bound[0] = l.first()
	for i := range l.buckets() {
		bound[i+1] += bound[i]
		l.setBound(i+1, bound[i+1])
		l.setFilter(i, filter[i])
	}
	i = 0
	for _, r := range runs {
		for _, rec := range r.records {
			to := &bound[bucket[i]]
			copy(l.write(*to, r.lead, r.from.key(int(rec))[r.strip:]), r.from.value(int(rec)))
			*to += r.size(rec)
			i++
		}
	}
	return ref
}

// burst splits the leaf in slot into two, or puts a node in its place. The leaf is a child of the
// node in parent; if that is nil, the leaf is the root.
func (t *tree) burst(parent, slot []byte, l leaf) (ok bool) {
	var space [maxEntries]uint16
	all := l.records(space[:0])
	if parent != nil {
		if c := l.middle(all, 0); c >= 0 {
			return t.halve(parent, l, all, byte(c))
		}
	}
	return t.deepen(parent, slot, l, all)
}

// middle returns the byte that best halves some records by what their keys have at a place: those
// that end there or have a lower byte, and the others. It returns -1 if one half would be empty.
func (l leaf) middle(records []uint16, at int) int {
	var with [257]int // the first one counts the keys that end
	for _, rec := range records {
		key := l.key(int(rec))
		if len(key) == at {
			with[0]++
		} else {
			with[int(key[at])+1]++
		}
	}
	best, most, below := -1, len(records), 0
	for c := range 256 {
		below += with[c]
		if larger := max(below, len(records)-below); larger < most {
			best, most = c, larger
		}
	}
	return best
}

// parted moves the records whose keys end at a place, or have a byte below c there, to the front.
func (l leaf) parted(records []uint16, at int, c byte) (below, others []uint16) {
	k := 0
	for i, rec := range records {
		if key := l.key(int(rec)); len(key) == at || key[at] < c {
			records[i], records[k] = records[k], rec
			k++
		}
	}
	return records[:k], records[k:]
}

// halve gives the records from byte c on to a new child of the node in parent.
func (t *tree) halve(parent []byte, l leaf, records []uint16, c byte) (ok bool) {
	below, others := l.parted(records, 0, c)
	left := t.build(0, run{from: l, records: below})
	right := t.build(0, run{from: l, records: others})
	if left == 0 || right == 0 {
		return t.discard(left, right)
	}
	n := t.roomFor(parent, 1)
	if n == nil {
		return t.discard(left, right)
	}
	t.replace(n.slot(n.index([]byte{c})), left)
	n.open(c)
	setRef(n.slot(n.index([]byte{c})), right)
	return true
}

// deepen replaces a leaf by a node. The common prefix of all keys becomes the node's prefix. If it
// does not fit, the leaf below bursts next.
func (t *tree) deepen(parent, slot []byte, l leaf, records []uint16) (ok bool) {
	old, lead := getRef(slot), 0
	var above node
	if parent != nil {
		lead = 1
		if above = t.roomFor(parent, 2); above == nil {
			return false
		}
	}
	prefix := l.commonPrefix(records, lead)
	prefix = prefix[:min(len(prefix), maxPrefix)]
	strip := lead + len(prefix)
	below, others := records, []uint16(nil)
	c := l.middle(records, strip)
	if c >= 0 {
		below, others = l.parted(records, strip, byte(c))
	}
	r, n := t.newNode(prefix, 2)
	left := t.build(0, run{from: l, records: below, strip: strip})
	right := ref(0)
	if c >= 0 {
		right = t.build(0, run{from: l, records: others, strip: strip})
	}
	if r == 0 || left == 0 || c >= 0 && right == 0 {
		return t.discard(r, left, right)
	}
	setRef(n.slot(0), left)
	if c >= 0 {
		n.open(byte(c))
		setRef(n.slot(1), right)
	}
	if parent != nil {
		slot = above.isolate(l.key(int(records[0]))[0])
	}
	setRef(slot, r)
	t.arena.free(old.addr())
	return true
}

// commonPrefix returns what all keys of some records have behind their first skip bytes.
func (l leaf) commonPrefix(records []uint16, skip int) []byte {
	prefix := l.key(int(records[0]))[skip:]
	for _, rec := range records[1:] {
		prefix = prefix[:commonPrefix(prefix, l.key(int(rec))[skip:])]
	}
	return prefix
}
