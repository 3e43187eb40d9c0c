package hostcache

import (
	"bytes"
	"hash/maphash"
)

// A ref says where a node or a leaf is. That of a node is the number of its block. That of a leaf
// has the numbers of both its blocks, and its level, which tells where in them everything is: so a
// reader can ask for both at once, and does not have to wait for the one to find the other. The ref
// 0 stands for nothing.
type ref uint64

const (
	leafBit    ref = 1 << 63
	levelShift     = 60
	bodyShift      = addrBits
)

func leafRef(head, body uint32, level int) ref {
	return leafBit | ref(level)<<levelShift | ref(body)<<bodyShift | ref(head)
}

func (r ref) isLeaf() bool { return r&leafBit != 0 }
func (r ref) isNode() bool { return r != 0 && r&leafBit == 0 }
func (r ref) addr() uint32 { return uint32(r) & (1<<addrBits - 1) }
func (r ref) body() uint32 { return uint32(r>>bodyShift) & (1<<addrBits - 1) }
func (r ref) level() int   { return int(r >> levelShift & maxLevel) }

const refSize = 8

func getRef(slot []byte) ref    { return ref(le.Uint64(slot)) }
func setRef(slot []byte, r ref) { le.PutUint64(slot, uint64(r)) }

// A tree is the HAT-trie (Askitis and Sinha 2007) that everything here is made of. Its inner nodes
// branch on one byte, after a prefix that all keys below share. Its leaves are hash tables of
// some hundred keys, of which they hold what the path from the root does not say. They are the
// paper's "hybrid" ones: several bytes of a node share a leaf, and one that gets too big bursts into
// two, which have half of the keys each. Only a leaf whose keys all go on with the same byte
// becomes a node. A leaf for each byte, the paper's "pure" ones, would save a byte per key; but of
// real host names it would have 44 on average, and what is spent on leaves and on nodes above them,
// and the time that the way down takes, are more than that.
//
// A value is so many bytes of a block, to be read and written by the caller. It does not say
// anything to the tree. The slice is good until the next put or del.
type tree struct {
	nodes  arena
	heads  arena // of leaves
	bodies arena // of leaves

	root  [refSize]byte
	width int // of a value
	count int
	seed  maphash.Seed
	longs longs
}

func newTree(width int) tree {
	return tree{width: width, seed: maphash.MakeSeed()}
}

// get returns the value of a key, nil if there is none.
func (t *tree) get(key []byte) []byte {
	r := getRef(t.root[:])
	for r.isNode() {
		n := t.node(r)
		if p := n.prefixLen(); p != 0 {
			if len(key) < p || string(n.prefix()) != string(key[:p]) {
				return nil
			}
			key = key[p:]
		}
		if len(key) == 0 {
			return n.value()
		}
		if r = n.child(key[0]); r.isNode() {
			key = key[1:]
		}
	}
	if r == 0 {
		return nil
	}
	l := t.leaf(r)
	if rec := t.find(l, key, t.hash(key)); rec != 0 {
		return l.value(rec)
	}
	return nil
}

// put returns the value of a key, which it adds if it is not there yet. The value of an added one
// has to be written by the caller, all of it.
func (t *tree) put(key []byte) (value []byte, added bool) {
	whole := key
	slot, parent := t.root[:], []byte(nil)
	for {
		r := getRef(slot)
		switch {
		case r == 0:
			first, _ := t.newLeaf(0, t.recordSize(key))
			setRef(slot, first)
		case r.isLeaf():
			l, hash := t.leaf(r), t.hash(key)
			if rec := t.find(l, key, hash); rec != 0 {
				return l.value(rec), false
			}
			if value = t.push(slot, l, key, hash); value != nil {
				t.count++
				return value, true
			}
			t.burst(parent, slot, l)
			// The node above may have moved.
			slot, parent, key = t.root[:], nil, whole
		default:
			n := t.node(r)
			common := commonPrefix(n.prefix(), key)
			if common < n.prefixLen() {
				t.splitPrefix(slot, n, common)
				continue
			}
			key = key[common:]
			if len(key) == 0 {
				added = n.addValue()
				t.count += b2i(added)
				return n.value(), added
			}
			slot, parent = n.slot(n.index(key[0])), slot
			if getRef(slot).isNode() {
				key = key[1:]
			}
		}
	}
}

// longest returns the value of the longest key that key begins with, and the length of that.
func (t *tree) longest(key []byte) (value []byte, length int) {
	rest := key
	r := getRef(t.root[:])
	for r.isNode() {
		n := t.node(r)
		if !bytes.HasPrefix(rest, n.prefix()) {
			return value, length
		}
		rest = rest[n.prefixLen():]
		if v := n.value(); v != nil {
			value, length = v, len(key)-len(rest)
		}
		if len(rest) == 0 {
			return value, length
		}
		if r = n.child(rest[0]); r.isNode() {
			rest = rest[1:]
		}
	}
	if r == 0 {
		return value, length
	}
	l := t.leaf(r)
	best := -1
	for rec := firstRecord; rec < l.end(); rec += l.recSize(rec) {
		if k := t.key(l, rec); len(k) > best && bytes.HasPrefix(rest, k) {
			best = len(k)
			value, length = l.value(rec), len(key)-len(rest)+best
		}
	}
	return value, length
}

// bytes returns how much memory the entries take.
func (t *tree) bytes() int { return t.nodes.used + t.heads.used + t.bodies.used + t.longs.bytes }

// reserved returns how much memory is held for entries.
func (t *tree) reserved() int {
	return t.nodes.reserved + t.heads.reserved + t.bodies.reserved + t.longs.bytes
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
