package hostcache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A scan yields the entries of a tree whose keys begin with a prefix, in their order. It copies a
// leaf at a time and sorts it, and looks for the next leaf by the place that its keys have in the
// order. So whatever is put or deleted between two steps, it goes on rightly.
type scan struct {
	prefix []byte
	from   []byte // no key before this one is still to come
	over   bool
	walk   walk

	// The latest batch: the entries of a leaf, or the one that ends at a node.
	bytes []byte // keys and values
	items []item // in order
}

// An item is one entry: where it is in the bytes, and how its key begins behind what the whole
// leaf shares, as a number, which nearly always decides a comparison.
type item struct {
	head       uint64
	begin, end uint32 // of the key; the value follows
}

func newScan(prefix []byte) *scan {
	return &scan{prefix: prefix, from: slices.Clone(prefix)}
}

// key returns the key of an item of the batch, value the bytes of its value.
func (s *scan) key(it item) []byte { return s.bytes[it.begin:it.end:it.end] }

func (s *scan) value(it item, width int) []byte {
	return s.bytes[it.end : int(it.end)+width]
}

// fill gets the next batch, and reports whether there is one.
func (s *scan) fill(t *tree) bool {
	s.items, s.bytes = s.items[:0], s.bytes[:0]
	if s.over {
		return false
	}
	if !s.walk.to(t, s.prefix, s.from, s) {
		s.over = true
		return false
	}
	s.from, s.over = s.walk.next(s.from[:0])
	return true
}

func (s *scan) atLeaf(w *walk, l leaf, from []byte) bool {
	var rest []byte // of the prefix
	if len(w.path) < len(w.prefix) {
		rest = w.prefix[len(w.path):]
	}
	for rec := firstRecord; rec < l.end(); rec += l.recSize(rec) {
		key := w.tree.key(l, rec)
		if bytes.HasPrefix(key, rest) && bytes.Compare(key, from) >= 0 {
			s.add(w.path, key, l.value(rec))
		}
	}
	slices.SortFunc(s.items, func(a, b item) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(s.bytes[a.begin:a.end], s.bytes[b.begin:b.end])
	})
	return len(s.items) > 0
}

func (s *scan) atEnd(w *walk, value []byte) bool {
	if !bytes.HasPrefix(w.path, w.prefix) {
		return false
	}
	s.add(w.path, nil, value)
	return true
}

func (s *scan) add(path, rest, value []byte) {
	begin := len(s.bytes)
	s.bytes = append(append(s.bytes, path...), rest...)
	end := len(s.bytes)
	s.bytes = append(s.bytes, value...)
	s.items = append(s.items, item{head(rest), uint32(begin), uint32(end)})
}

// head returns the first eight bytes as a number that is in the same order.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	n := uint64(0)
	for i := range 8 {
		n <<= 8
		if i < len(key) {
			n |= uint64(key[i])
		}
	}
	return n
}

// A walk goes through a tree in order, from a key on, until it has been at a leaf or at the value
// of a node that its visitor took something from.
type walk struct {
	tree    *tree
	visitor visitor
	prefix  []byte // keys without it are of no interest
	path    []byte // what the nodes above say of the key
	ended   bool   // at the value of a node
	first   int    // the byte at which the leaf begins, as a child of the node above
	limit   int    // the byte at which the next child begins, 256 if there is none
}

type visitor interface {
	atLeaf(w *walk, l leaf, from []byte) (taken bool)
	atEnd(w *walk, value []byte) (taken bool)
}

// to walks to the first place not before a key, and reports whether there is one.
func (w *walk) to(t *tree, prefix, from []byte, v visitor) bool {
	*w = walk{tree: t, visitor: v, prefix: prefix, path: w.path[:0], limit: 256}
	r := getRef(t.root[:])
	if r.isLeaf() {
		return v.atLeaf(w, t.leaf(r), from)
	}
	return r != 0 && w.below(r, from)
}

// below visits the node that r refers to. Only keys not before from matter, which is to be compared
// with what follows the path.
func (w *walk) below(r ref, from []byte) (taken bool) {
	n := w.tree.node(r)
	prefix := n.prefix()
	common := commonPrefix(prefix, from)
	switch {
	case common == len(prefix):
		from = from[common:]
	case common == len(from) || prefix[common] > from[common]:
		from = nil // all of it comes later
	default:
		return false
	}
	above := len(w.path)
	w.path = append(w.path, prefix...)
	if w.mayMatch() && w.children(n, from) {
		return true
	}
	w.path = w.path[:above]
	return false
}

func (w *walk) children(n node, from []byte) bool {
	if v := n.value(); v != nil && len(from) == 0 && w.visitor.atEnd(w, v) {
		w.ended = true
		return true
	}
	first := byte(0)
	if len(from) > 0 {
		first = from[0]
	}
	limit, i := 0, n.index(first)
	for c := n.begin(first); c < 256; c = limit {
		limit = n.next(c + 1)
		r := getRef(n.slot(i))
		if r != 0 && w.overlaps(c, limit) && w.child(r, c, limit, from) {
			return true
		}
		from = nil
		i++
	}
	return false
}

// child visits the child that begins at byte c.
func (w *walk) child(r ref, c, limit int, from []byte) (taken bool) {
	if r.isLeaf() {
		w.first, w.limit = c, limit
		return w.visitor.atLeaf(w, w.tree.leaf(r), from)
	}
	above := len(w.path)
	w.path = append(w.path, byte(c))
	if w.below(r, from[min(1, len(from)):]) {
		return true
	}
	w.path = w.path[:above]
	return false
}

// mayMatch says whether keys with the prefix can begin with the path.
func (w *walk) mayMatch() bool {
	n := min(len(w.path), len(w.prefix))
	return string(w.path[:n]) == string(w.prefix[:n])
}

// overlaps says whether, behind the path, keys with the prefix can go on with a byte in a range.
func (w *walk) overlaps(begin, end int) bool {
	if len(w.path) >= len(w.prefix) {
		return true
	}
	c := int(w.prefix[len(w.path)])
	return begin <= c && c < end
}

// start returns the first key that belongs into the leaf at which the walk has stopped.
func (w *walk) start(to []byte) []byte {
	to = append(to, w.path...)
	if w.first > 0 {
		to = append(to, byte(w.first))
	}
	return to
}

// next writes the first key that can come after what the walk has stopped at. It is over if there
// is none.
func (w *walk) next(to []byte) (from []byte, over bool) {
	to = append(to, w.path...)
	switch {
	case w.ended:
		return append(to, 0), false
	case w.limit < 256:
		return append(to, byte(w.limit)), false
	}
	return after(to)
}

// after turns a prefix into the first key that comes after all keys with it, in place. It is over
// if there is none.
func after(prefix []byte) (key []byte, over bool) {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] != 0xff {
			prefix[n-1]++
			return prefix[:n], false
		}
	}
	return nil, true
}
