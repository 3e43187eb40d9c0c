package hattrie

import "math/bits"

// A ref identifies a node or a leaf: the address of its block and, for a leaf, its level, so that a
// search need not read the level from the leaf before it can find the bucket. The zero ref refers
// to nothing.
type ref uint32

const (
	leafBit    ref = 1 << 31
	levelShift     = addrBits
	refSize        = 4
)

func leafRef(addr uint32, level int) ref { return leafBit | ref(level)<<levelShift | ref(addr) }

func (r ref) isLeaf() bool { return r&leafBit != 0 }
func (r ref) isNode() bool { return r != 0 && r&leafBit == 0 }
func (r ref) addr() uint32 { return uint32(r) & (1<<addrBits - 1) }
func (r ref) level() int   { return int(r >> levelShift & 7) }

// A slot is the memory of a ref: the root's, or in the list of a node's children.
func getRef(slot []byte) ref    { return ref(le.Uint32(slot)) }
func setRef(slot []byte, r ref) { le.PutUint32(slot, uint32(r)) }

// A node is the block of an inner node:
//
//	 0  header of the arena
//	 4  length of the prefix
//	 5  number of children that begin below bytes 64, 128 and 192
//	 8  a bit for each byte at which a child begins
//	40  prefix, then the refs of the children in their order
//
// The node stands for the keys that begin with the path to it and its prefix. The first child has
// the key that ends there, and those that go on with a byte below the first bit. Each bit begins
// another child, which has all bytes up to the next bit. A child may be empty. Only a child that
// has exactly one byte can be a node, and the keys below it do not repeat that byte; the keys in a
// leaf do.
//
// The bitmap is slower than 256 refs, but takes 36 bytes instead of 1,024, so the nodes of a big
// trie stay in the processor's cache.
type node []byte

const (
	nodePrefixLen = 4
	nodeRanks     = 5
	nodeBits      = 8
	nodePrefix    = 40

	maxPrefix = 255
)

func (t *tree) node(r ref) node { return t.arena.at(r.addr()) }

func (n node) prefixLen() int { return int(n[nodePrefixLen]) }
func (n node) prefix() []byte { return n[nodePrefix : nodePrefix+n.prefixLen()] }

func (n node) word(i int) uint64 { return le.Uint64(n[nodeBits+8*i:]) }

// rank returns the number of children that begin below the bytes of a word of the bitmap, without
// the first child.
func (n node) rank(word int) int {
	if word == 0 {
		return 0
	}
	return int(n[nodeRanks+word-1])
}

func (n node) children() int { return n.rank(3) + bits.OnesCount64(n.word(3)) + 1 }

func nodeSize(prefix, children int) int { return slotsAt(prefix) + children*refSize }

// slotsAt aligns the slots, so that none lies on two cache lines.
func slotsAt(prefix int) int { return (nodePrefix + prefix + refSize - 1) / refSize * refSize }

func (n node) slot(i int) []byte {
	at := slotsAt(n.prefixLen()) + i*refSize
	return n[at : at+refSize : at+refSize]
}

// index returns the number of the child that has the keys beginning with rest, which is what
// follows the prefix.
func (n node) index(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	word, upTo := int(rest[0]>>6), uint64(2)<<(rest[0]&63)-1
	return n.rank(word) + bits.OnesCount64(n.word(word)&upTo)
}

// next returns the first byte from c on at which a child begins, or 256.
func (n node) next(c int) int {
	for c < 256 {
		if set := n.word(c>>6) >> (c & 63); set != 0 {
			return c + bits.TrailingZeros64(set)
		}
		c = c&^63 + 64
	}
	return 256
}

// begin returns the last byte up to c at which a child begins, or -1 if c belongs to the first.
func (n node) begin(c int) int {
	for c >= 0 {
		if set := n.word(c>>6) << (63 - c&63); set != 0 {
			return c - bits.LeadingZeros64(set)
		}
		c = c&^63 - 1
	}
	return -1
}

// flip sets or clears the bit of c, where by is 1 or -1.
func (n node) flip(c byte, by int) {
	word := int(c >> 6)
	le.PutUint64(n[nodeBits+8*word:], n.word(word)^1<<(c&63))
	for above := word; above < 3; above++ {
		n[nodeRanks+above] += byte(by)
	}
}

// open lets an empty child begin at c, where none begins so far. The block must have room for it.
func (n node) open(c byte) {
	i, k := n.index([]byte{c})+1, n.children()
	at := slotsAt(n.prefixLen())
	copy(n[at+(i+1)*refSize:], n[at+i*refSize:at+k*refSize])
	n.flip(c, 1)
	setRef(n.slot(i), 0)
}

// shut removes the child that begins at c. Its bytes go to the one before.
func (n node) shut(c byte) {
	i, k, at := n.index([]byte{c}), n.children(), slotsAt(n.prefixLen())
	copy(n[at+i*refSize:], n[at+(i+1)*refSize:at+k*refSize])
	n.flip(c, -1)
}

// newNode returns a node with one empty child and room for some more, or 0 if there is no memory.
func (t *tree) newNode(prefix []byte, children int) (ref, node) {
	addr := t.arena.alloc(nodeSize(len(prefix), children))
	if addr == 0 {
		return 0, nil
	}
	n := node(t.arena.at(addr))
	clear(n[nodePrefixLen:nodePrefix])
	n[nodePrefixLen] = byte(len(prefix))
	copy(n[nodePrefix:], prefix)
	setRef(n.slot(0), 0)
	return ref(addr), n
}

// moveNode replaces the node in slot by one with a shorter prefix, the end of its own, or with room
// for more children. It returns nil if there is no memory.
func (t *tree) moveNode(slot []byte, prefix []byte, children int) node {
	old := getRef(slot)
	n := t.node(old)
	r, moved := t.newNode(prefix, children)
	if r == 0 {
		return nil
	}
	copy(moved[nodeRanks:nodePrefix], n[nodeRanks:])
	k := n.children() * refSize
	copy(moved[slotsAt(len(prefix)):], n[slotsAt(n.prefixLen()):][:k])
	t.arena.free(old.addr())
	setRef(slot, r)
	return moved
}

// roomFor returns the node in slot, with room for some more children, or nil if there is no memory.
func (t *tree) roomFor(slot []byte, more int) node {
	n := t.node(getRef(slot))
	children := n.children() + more
	if nodeSize(n.prefixLen(), children) > sizeOf(n) {
		n = t.moveNode(slot, n.prefix(), children)
	}
	return n
}

// isolate gives byte c of a node, which must have room for two more children, a child of its own,
// and returns its slot. The child that had c so far is dropped: the caller has to keep what was in
// it.
func (n node) isolate(c byte) (slot []byte) {
	begins, end := n.begin(int(c)) == int(c), n.next(int(c)+1)
	setRef(n.slot(n.index([]byte{c})), 0)
	if !begins {
		n.open(c)
	}
	if int(c)+1 < end {
		n.open(c + 1)
	}
	return n.slot(n.index([]byte{c}))
}

// splitPrefix puts a node above the one in slot, which takes the first bytes of its prefix. It
// reports whether there was memory for it.
func (t *tree) splitPrefix(slot []byte, at int) (ok bool) {
	old := t.node(getRef(slot))
	prefix := old.prefix()
	above, n := t.newNode(prefix[:at], 3)
	if above == 0 {
		return false
	}
	c := prefix[at]
	if t.moveNode(slot, prefix[at+1:], old.children()) == nil {
		t.arena.free(above.addr())
		return false
	}
	setRef(n.isolate(c), getRef(slot))
	setRef(slot, above)
	return true
}
