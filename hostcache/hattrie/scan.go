package hattrie

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A scan yields the entries of a tree in the order of their keys, from one key on, as long as they
// have a prefix. It copies and sorts a leaf at a time, and finds the next leaf by the first key
// that can be in it. So it continues correctly after any change between two leaves.
type scan struct {
	prefix []byte
	from   []byte // no key below this one is still to come
	over   bool

	// The current batch.
	path  []byte
	bytes []byte // keys and values
	items []item // in order
}

// An item is an entry of the batch. Its head is the beginning of what the key has behind the path,
// as a number: it nearly always decides a comparison.
type item struct {
	head       uint64
	begin, end uint32 // of the key in the bytes; the value follows
}

func (s *scan) key(it item) []byte { return s.bytes[it.begin:it.end] }

func (s *scan) value(it item, width int) []byte { return s.bytes[it.end : int(it.end)+width] }

// fill gets the next batch, and reports whether there is one.
func (s *scan) fill(t *tree) bool {
	s.items, s.bytes = s.items[:0], s.bytes[:0]
	for !s.over && len(s.items) == 0 {
		l, rest, next := s.locate(t)
		if l.block != nil {
			s.copy(l, rest)
		}
		s.over = next == nil ||
			!bytes.HasPrefix(next, s.prefix) && bytes.Compare(next, s.prefix) > 0
		s.from = append(s.from[:0], next...)
	}
	return len(s.items) > 0
}

// locate finds the leaf that the key from belongs to, and sets the path to it. Of its keys, those
// below rest are too low. It also returns the lowest key that belongs behind the leaf, nil if there
// is none. The leaf may be missing.
func (s *scan) locate(t *tree) (l leaf, rest, next []byte) {
	s.path, rest = s.path[:0], s.from
	above, limit := 0, 256 // next is that much of the path, and this byte
	r := getRef(t.root[:])
	for r.isNode() {
		n := t.node(r)
		prefix := n.prefix()
		switch common := commonPrefix(prefix, rest); {
		case common == len(prefix):
			rest = rest[common:]
		case common == len(rest) || prefix[common] > rest[common]:
			rest = nil // all keys of the node are higher
		default:
			r = 0 // all of them are lower
			continue
		}
		s.path = append(s.path, prefix...)
		r = getRef(n.slot(n.index(rest)))
		c := -1
		if len(rest) > 0 {
			c = int(rest[0])
		}
		if end := n.next(c + 1); end < 256 {
			above, limit = len(s.path), end
		}
		if r.isNode() {
			s.path, rest = append(s.path, byte(c)), rest[1:]
		}
	}
	if limit < 256 {
		next = append(slices.Clone(s.path[:above]), byte(limit))
	}
	if r != 0 {
		l = t.leaf(r)
	}
	return l, rest, next
}

// copy makes a batch of the entries of a leaf whose keys, behind the path, are not below from.
func (s *scan) copy(l leaf, from []byte) {
	common := min(len(s.path), len(s.prefix))
	if string(s.path[:common]) != string(s.prefix[:common]) {
		return
	}
	rest := s.prefix[common:]
	for rec := l.first(); rec < l.end(); rec = l.next(rec) {
		key := l.key(rec)
		if !bytes.HasPrefix(key, rest) || bytes.Compare(key, from) < 0 {
			continue
		}
		begin := len(s.bytes)
		s.bytes = append(append(s.bytes, s.path...), key...)
		end := len(s.bytes)
		s.bytes = append(s.bytes, l.value(rec)...)
		s.items = append(s.items, item{head(key), uint32(begin), uint32(end)})
	}
	slices.SortFunc(s.items, func(a, b item) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(s.key(a), s.key(b))
	})
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
