package hostcache

import (
	"math"
	"math/bits"
)

// A node is the block of an inner node of a tree:
//
//	 0  header of the arena
//	 4  length of the prefix
//	 5  1 if a key ends here, so that there is a value
//	 6  number of children, two bytes
//	 8  how many of them begin below 0, 64, 128 and 192
//	12  a bit for each byte at which a child begins
//	44  prefix, value, children in the order of their bytes
//
// A child has the keys that go on with some byte from the one it begins at up to where the next
// child begins. The first one begins at 0, so each byte has a child; but that may be empty. A child
// that is a node has one byte only, which is not a part of what is below it. The keys in a leaf
// begin with that byte.
//
// A bitmap is slower than 256 children in a row, but takes 36 bytes where those take 2,048: the
// nodes of a big tree stay in the cache.
type node struct {
	block []byte
	width int
}

const (
	nodePrefixLen = 4
	nodeHasValue  = 5
	nodeChildren  = 6
	nodeRanks     = 8
	nodeBits      = 12
	nodePrefix    = 44

	maxPrefix = 255
)

func (t *tree) node(r ref) node { return node{t.nodes.at(r.addr()), t.width} }

func (n node) prefixLen() int { return int(n.block[nodePrefixLen]) }

func (n node) prefix() []byte { return n.block[nodePrefix : nodePrefix+n.prefixLen()] }

// value returns nil if no key ends here.
func (n node) value() []byte {
	if n.block[nodeHasValue] == 0 {
		return nil
	}
	at := nodePrefix + n.prefixLen()
	return n.block[at : at+n.width : at+n.width]
}

func (n node) addValue() (added bool) {
	added = n.block[nodeHasValue] == 0
	n.block[nodeHasValue] = 1
	return added
}

func (n node) dropValue() { n.block[nodeHasValue] = 0 }

func (n node) children() int { return int(le.Uint16(n.block[nodeChildren:])) }

// slots returns where the children are.
func (n node) slots() int { return nodeSize(n.width, n.prefixLen(), 0) }

// nodeSize aligns the children, so that none lies on two cache lines.
func nodeSize(width, prefix, children int) int {
	return (nodePrefix+width+prefix+refSize-1)/refSize*refSize + children*refSize
}

// index returns the number of the child that has a byte.
func (n node) index(c byte) int {
	word := int(c >> 6)
	set := le.Uint64(n.block[nodeBits+8*word:])
	upTo := uint64(2)<<(c&63) - 1
	return int(n.block[nodeRanks+word]) + bits.OnesCount64(set&upTo) - 1
}

func (n node) child(c byte) ref { return getRef(n.block[n.slots()+n.index(c)*refSize:]) }

func (n node) slot(i int) []byte {
	at := n.slots() + i*refSize
	return n.block[at : at+refSize]
}

// next returns the first byte from c on at which a child begins, 256 if there is none.
func (n node) next(c int) int {
	for c < 256 {
		set := le.Uint64(n.block[nodeBits+8*(c>>6):]) >> (c & 63)
		if set != 0 {
			return c + bits.TrailingZeros64(set)
		}
		c = c&^63 + 64
	}
	return 256
}

// begin returns the byte at which the child that has c begins.
func (n node) begin(c byte) int {
	word, upTo := int(c>>6), uint64(2)<<(c&63)-1
	for {
		if set := le.Uint64(n.block[nodeBits+8*word:]) & upTo; set != 0 {
			return word*64 + bits.Len64(set) - 1
		}
		word, upTo = word-1, math.MaxUint64
	}
}

// flip notes that a child begins at c, or does not any more.
func (n node) flip(c byte, by int) {
	word := int(c >> 6)
	at := nodeBits + 8*word
	le.PutUint64(n.block[at:], le.Uint64(n.block[at:])^1<<(c&63))
	le.PutUint16(n.block[nodeChildren:], uint16(n.children()+by))
	for above := word + 1; above < 4; above++ {
		n.block[nodeRanks+above] += byte(by)
	}
}

// open has an empty child begin at c, where none does so far. It requires that the block has room.
func (n node) open(c byte) {
	i, k := 0, n.children()
	if k > 0 {
		i = n.index(c) + 1
	}
	at := n.slots()
	copy(n.block[at+(i+1)*refSize:], n.block[at+i*refSize:at+k*refSize])
	n.flip(c, 1)
	setRef(n.slot(i), 0)
}

// shut forgets the child that begins at c. Its bytes go to the one before.
func (n node) shut(c byte) {
	i, k, at := n.index(c), n.children(), n.slots()
	copy(n.block[at+i*refSize:], n.block[at+(i+1)*refSize:at+k*refSize])
	n.flip(c, -1)
}

// newNode returns a node without children and value, with room for so many children.
func (t *tree) newNode(prefix []byte, children int) (ref, node) {
	addr := t.nodes.alloc(nodeSize(t.width, len(prefix), children))
	n := node{t.nodes.at(addr), t.width}
	clear(n.block[nodePrefixLen:nodePrefix])
	n.block[nodePrefixLen] = byte(len(prefix))
	copy(n.block[nodePrefix:], prefix)
	return ref(addr), n
}

// moveNode replaces a node by one with a shorter or equal prefix, the end of its own, and room for
// so many children.
func (t *tree) moveNode(slot []byte, n node, prefix []byte, children int) node {
	r, moved := t.newNode(prefix, children)
	copy(moved.block[nodeHasValue:nodePrefix], n.block[nodeHasValue:])
	copy(moved.value(), n.value())
	k := n.children()
	copy(moved.block[moved.slots():], n.block[n.slots():n.slots()+k*refSize])
	t.nodes.free(getRef(slot).addr())
	setRef(slot, r)
	return moved
}

// roomFor returns the node that slot refers to, with room for so many children more.
func (t *tree) roomFor(slot []byte, more int) node {
	n := t.node(getRef(slot))
	children := n.children() + more
	if nodeSize(t.width, n.prefixLen(), children) > size(n.block) {
		n = t.moveNode(slot, n, n.prefix(), children)
	}
	return n
}

// isolate returns the slot of a child that has no byte but c, of the node that slot refers to. What
// the child has had so far is up to the caller.
func (t *tree) isolate(slot []byte, c byte) []byte {
	n := t.roomFor(slot, 2)
	begin, end := n.begin(c), n.next(int(c)+1)
	setRef(n.slot(n.index(c)), 0)
	if begin < int(c) {
		n.open(c)
	}
	if int(c)+1 < end {
		n.open(c + 1)
	}
	return n.slot(n.index(c))
}

// splitPrefix puts a node above the node that slot refers to, which takes the first bytes of its
// prefix.
func (t *tree) splitPrefix(slot []byte, n node, at int) {
	prefix := n.prefix()
	above, child := t.nodeAbove(prefix[:at], prefix[at])
	setRef(child, getRef(slot))
	t.moveNode(child, n, prefix[at+1:], n.children())
	setRef(slot, above)
}

// nodeAbove returns a node with a prefix, and the slot of its child that has no byte but c.
func (t *tree) nodeAbove(prefix []byte, c byte) (r ref, child []byte) {
	var slot [refSize]byte
	r, n := t.newNode(prefix, 3) // so that isolate need not move it
	n.open(0)
	setRef(slot[:], r)
	return r, t.isolate(slot[:], c)
}
