package hattrie

// joinShare is the share of a full leaf that the records of two leaves may make up to be joined. It
// is small, so that leaves do not burst and join by turns.
const joinShare = 4

// What a del frees is handed back at once. Joining leaves needs a new block before the old ones are
// free, so it is left for later unless there is one: a del never makes the arena grow.

// trim gives back what a leaf has too much, after a record was removed.
func (t *tree) trim(slot []byte, l leaf) {
	if levelFor(l.count()) < l.level-1 && t.rewrite(slot, l, 0) {
		return
	}
	if spare := sizeOf(l.block) - l.end(); spare > 2*unit && spare > l.end()/4 {
		t.arena.shrink(getRef(slot).addr(), l.end()+l.end()/8)
	}
}

// joinAround joins the child that has rest with its neighbours, if they have become small.
func (t *tree) joinAround(n node, rest []byte) {
	if getRef(n.slot(n.index(rest))).isNode() {
		return
	}
	c := -1 // the byte at which the child begins
	if len(rest) > 0 {
		c = n.begin(int(rest[0]))
	}
	if end := n.next(c + 1); end < 256 {
		t.join(n, byte(end))
	}
	if c >= 0 {
		t.join(n, byte(c))
	}
}

// join joins the child that begins at c with the one before it, if both are small leaves.
func (t *tree) join(n node, c byte) {
	i := n.index([]byte{c})
	left, right := n.slot(i-1), getRef(n.slot(i))
	switch l := getRef(left); {
	case l.isNode() || right.isNode():
		return
	case l == 0:
		setRef(left, right)
	case right != 0:
		if !t.replace(left, t.joined(nil, t.leaf(l), t.leaf(right))) {
			return
		}
		t.arena.free(right.addr())
	}
	n.shut(c)
}

// joined returns a leaf with the records of others, whose keys get more bytes at the front, or 0 if
// that would be too big or there is no block for it.
func (t *tree) joined(lead []byte, leaves ...leaf) ref {
	var space [maxEntries / joinShare]uint16
	var runs [2]run
	records, count, bytes := space[:0], 0, 0
	for i, l := range leaves {
		count += l.count()
		bytes += l.end() + l.count()*(len(lead)+2)
		if count > maxEntries/joinShare || bytes > maxLeaf/joinShare {
			return 0
		}
		begin := len(records)
		records = l.records(records)
		runs[i] = run{from: l, records: records[begin:], lead: lead}
	}
	return t.build(0, runs[:len(leaves)]...)
}

// collapse replaces a node that has one child left by that child, if it is empty or a small leaf.
func (t *tree) collapse(slot, lead []byte, n node) {
	if n.children() > 1 || getRef(n.slot(0)).isNode() {
		return
	}
	child := getRef(n.slot(0))
	if child != 0 {
		path := append(append(make([]byte, 0, 1+maxPrefix), lead...), n.prefix()...)
		joined := t.joined(path, t.leaf(child))
		if joined == 0 {
			return
		}
		t.arena.free(child.addr())
		child = joined
	}
	t.arena.free(getRef(slot).addr())
	setRef(slot, child)
}
