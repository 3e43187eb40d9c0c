package hostcache

import "math/bits"

// A node is the block of an inner node of a tree:
//
//	 0  header of the arena
//	 4  length of the prefix
//	 5  1 if a key ends here, so that there is a value
//	 6  number of children, two bytes
//	 8  how many of them are below 0, 64, 128 and 192
//	12  a bit for each byte that has a child
//	44  value, prefix, children in the order of their bytes
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
	nodeValue     = 44

	maxPrefix = 255
)

func (t *tree) node(r ref) node { return node{t.nodes.at(r.addr()), t.width} }

func (n node) prefixLen() int { return int(n.block[nodePrefixLen]) }

func (n node) prefix() []byte {
	at := nodeValue + n.width
	return n.block[at : at+n.prefixLen()]
}

// value returns nil if no key ends here.
func (n node) value() []byte {
	if n.block[nodeHasValue] == 0 {
		return nil
	}
	return n.block[nodeValue : nodeValue+n.width : nodeValue+n.width]
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
	return (nodeValue+width+prefix+refSize-1)/refSize*refSize + children*refSize
}

// rank returns how many bytes below c have a child, and whether c has one.
func (n node) rank(c byte) (rank int, present bool) {
	word := int(c >> 6)
	set := le.Uint64(n.block[nodeBits+8*word:])
	bit := uint64(1) << (c & 63)
	return int(n.block[nodeRanks+word]) + bits.OnesCount64(set&(bit-1)), set&bit != 0
}

// flip notes that c has got or lost its child.
func (n node) flip(c byte, by int) {
	word := int(c >> 6)
	at := nodeBits + 8*word
	le.PutUint64(n.block[at:], le.Uint64(n.block[at:])^1<<(c&63))
	le.PutUint16(n.block[nodeChildren:], uint16(n.children()+by))
	for above := word + 1; above < 4; above++ {
		n.block[nodeRanks+above] += byte(by)
	}
}

func (n node) child(c byte) ref {
	rank, present := n.rank(c)
	if !present {
		return 0
	}
	return getRef(n.block[n.slots()+rank*refSize:])
}

// childSlot returns nil if c has no child.
func (n node) childSlot(c byte) []byte {
	rank, present := n.rank(c)
	if !present {
		return nil
	}
	return n.slot(rank)
}

func (n node) slot(i int) []byte {
	at := n.slots() + i*refSize
	return n.block[at : at+refSize]
}

// next returns the first byte from c on that has a child, 256 if there is none.
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

// open makes an empty slot for a child that is not there yet. It requires that the block has room.
func (n node) open(c byte) []byte {
	rank, _ := n.rank(c)
	k := n.children()
	at := n.slots()
	copy(n.block[at+(rank+1)*refSize:], n.block[at+rank*refSize:at+k*refSize])
	n.flip(c, 1)
	slot := n.slot(rank)
	setRef(slot, 0)
	return slot
}

// dropChild removes the child of c from the node.
func (n node) dropChild(c byte) {
	rank, _ := n.rank(c)
	k := n.children()
	at := n.slots()
	copy(n.block[at+rank*refSize:], n.block[at+(rank+1)*refSize:at+k*refSize])
	n.flip(c, -1)
}

// newNode returns a node without children and value, with room for so many children.
func (t *tree) newNode(prefix []byte, children int) (ref, node) {
	addr := t.nodes.alloc(nodeSize(t.width, len(prefix), children))
	n := node{t.nodes.at(addr), t.width}
	clear(n.block[nodePrefixLen:nodeValue])
	n.block[nodePrefixLen] = byte(len(prefix))
	copy(n.block[nodeValue+t.width:], prefix)
	return ref(addr), n
}

// moveNode replaces a node by one with a shorter or equal prefix, the end of its own, and room for
// so many children.
func (t *tree) moveNode(slot []byte, n node, prefix []byte, children int) node {
	r, moved := t.newNode(prefix, children)
	copy(moved.block[nodeHasValue:nodeValue+t.width], n.block[nodeHasValue:])
	k := n.children()
	copy(moved.block[moved.slots():], n.block[n.slots():n.slots()+k*refSize])
	t.nodes.free(getRef(slot).addr())
	setRef(slot, r)
	return moved
}

// childSlot returns the slot of a child of the node that slot refers to. It is empty if the child
// is new.
func (t *tree) childSlot(slot []byte, n node, c byte) []byte {
	if s := n.childSlot(c); s != nil {
		return s
	}
	k := n.children()
	if nodeSize(t.width, n.prefixLen(), k+1) > size(n.block) {
		n = t.moveNode(slot, n, n.prefix(), k+1)
	}
	return n.open(c)
}

// splitPrefix puts a node above the node that slot refers to, which takes the first bytes of its
// prefix.
func (t *tree) splitPrefix(slot []byte, n node, at int) {
	prefix := n.prefix()
	above, a := t.newNode(prefix[:at], 2)
	s := a.open(prefix[at])
	setRef(s, getRef(slot))
	t.moveNode(s, n, prefix[at+1:], n.children())
	setRef(slot, above)
}

// tidy is called when something was removed from the node that slot refers to. It removes nodes
// that have nothing left, and makes a leaf of what fits into a small one, so that a tree that
// shrinks does not keep the nodes of its great days.
func (t *tree) tidy(slot []byte, n node) {
	k := n.children()
	if k == 0 && n.value() == nil {
		t.nodes.free(getRef(slot).addr())
		setRef(slot, 0)
		return
	}
	if total := b2i(n.value() != nil); k <= maxJoined && t.joinable(n, total) {
		t.join(slot, n)
	}
}

// maxJoined bounds the children that tidy looks at, and maxEntries/joinShare the entries, so that
// leaves do not burst and join by turns.
const (
	maxJoined = 8
	joinShare = 4
)

// joinable says whether the children of a node are leaves with few entries.
func (t *tree) joinable(n node, total int) bool {
	bytes := 0
	for i := range n.children() {
		r := getRef(n.slot(i))
		if !r.isLeaf() {
			return false
		}
		l := t.leaf(r)
		total += l.count()
		// Each key gets longer by the prefix and a byte.
		bytes += l.end() + l.count()*(n.prefixLen()+1)
	}
	return total <= maxEntries/joinShare && bytes <= maxLeaf/joinShare
}

// join replaces a node and its leaves by one leaf.
func (t *tree) join(slot []byte, n node) {
	var joined [refSize]byte
	key := append([]byte(nil), n.prefix()...)
	add := func(value []byte) {
		if getRef(joined[:]) == 0 {
			first, _ := t.newLeaf(0, t.recordSize(key))
			setRef(joined[:], first)
		}
		copy(t.push(joined[:], t.leaf(getRef(joined[:])), key), value)
	}
	if v := n.value(); v != nil {
		add(v)
	}
	for c := n.next(0); c < 256; c = n.next(c + 1) {
		r := n.child(byte(c))
		l := t.leaf(r)
		for rec := firstRecord; rec < l.end(); rec += l.recSize(rec) {
			key = append(append(key[:n.prefixLen()], byte(c)), t.key(l, rec)...)
			add(l.value(rec))
			t.dropLong(l, rec)
		}
		t.freeLeaf(r)
		key = key[:n.prefixLen()]
	}
	t.nodes.free(getRef(slot).addr())
	setRef(slot, getRef(joined[:]))
}
