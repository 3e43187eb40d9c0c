package hattrie

import (
	"bytes"
	"hash/maphash"
)

// A tree is a HAT-trie (Askitis and Sinha 2007). Its inner nodes branch on one byte, after a prefix
// that all keys below share. Its leaves are hash tables of a few hundred keys. They are the paper's
// "hybrid" ones: a leaf may have several bytes of a node, and one that gets too big bursts into two
// with half of the keys each. Only a leaf whose keys all go on with the same byte becomes a node. A
// leaf for each byte, the paper's "pure" ones, would save a byte per key, but would have 44 keys on
// average, of real host names, and what the additional leaves and nodes cost is more than that.
//
// The tree knows only the width of its values. A value is a slice of a block, for the caller to
// read and write, and is valid until the next put or del.
type tree struct {
	arena arena
	root  [refSize]byte
	width int // of a value
	count int
	seed  maphash.Seed
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
		if r = getRef(n.slot(n.index(key))); r.isNode() {
			key = key[1:]
		}
	}
	if r == 0 {
		return nil
	}
	l := t.leaf(r)
	if rec := l.find(key, t.hash(key)); rec != 0 {
		return l.value(rec)
	}
	return nil
}

// put returns the value of a key. If it adds the key, the caller has to write all of the value. It
// returns nil if the arena may hold at most limit bytes, and the key does not fit.
func (t *tree) put(key []byte, limit int) (value []byte, added bool) {
	t.arena.limit = limit
	whole := key
	slot, parent := t.root[:], []byte(nil)
	for {
		r := getRef(slot)
		switch {
		case r == 0:
			first, _ := t.newLeaf(0, recordSize(len(key), t.width))
			if first == 0 {
				return nil, false
			}
			setRef(slot, first)
		case r.isLeaf():
			l, hash := t.leaf(r), t.hash(key)
			if rec := l.find(key, hash); rec != 0 {
				return l.value(rec), false
			}
			switch need := recordSize(len(key), t.width); {
			case l.isFull(need):
				if !t.burst(parent, slot, l) {
					return nil, false
				}
				// The node above may have moved.
				slot, parent, key = t.root[:], nil, whole
			case l.isTight(need):
				if !t.rewrite(slot, l, need) {
					return nil, false
				}
			default:
				t.count++
				return t.push(l, key, hash), true
			}
		default:
			n := t.node(r)
			common := commonPrefix(n.prefix(), key)
			if common < n.prefixLen() {
				if !t.splitPrefix(slot, common) {
					return nil, false
				}
				continue
			}
			key = key[common:]
			slot, parent = n.slot(n.index(key)), slot
			if getRef(slot).isNode() {
				key = key[1:]
			}
		}
	}
}

// del removes a key. It never makes the arena grow: steps that need a new block are postponed until
// there is one.
func (t *tree) del(key []byte) (deleted bool) {
	t.arena.limit = 0
	deleted = t.delBelow(t.root[:], nil, key)
	if deleted {
		t.count--
	}
	return deleted
}

// delBelow removes a key from what is in slot. If that is the child of a node, lead is its byte.
func (t *tree) delBelow(slot, lead, key []byte) (deleted bool) {
	r := getRef(slot)
	if r == 0 {
		return false
	}
	if r.isLeaf() {
		l := t.leaf(r)
		rec := l.find(key, t.hash(key))
		if rec != 0 {
			t.remove(slot, l, rec)
		}
		return rec != 0
	}
	n := t.node(r)
	if !bytes.HasPrefix(key, n.prefix()) {
		return false
	}
	key = key[n.prefixLen():]
	child, rest := n.slot(n.index(key)), key
	if getRef(child).isNode() {
		rest = key[1:]
	}
	if !t.delBelow(child, key[:len(key)-len(rest)], rest) {
		return false
	}
	t.joinAround(n, key)
	t.collapse(slot, lead, n)
	return true
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
