package hostcache

import "bytes"

// joinShare is the share of a full leaf that two leaves may have together to be joined. It is
// small, so that leaves do not burst and join by turns.
const joinShare = 4

// del removes a key.
func (t *tree) del(key []byte) (deleted bool) {
	deleted = t.delBelow(t.root[:], nil, key)
	t.count -= b2i(deleted)
	return deleted
}

// delBelow removes a key from what slot refers to, and empties the slot if nothing is left. If that
// is the child of a node, lead is its byte.
func (t *tree) delBelow(slot, lead, key []byte) bool {
	r := getRef(slot)
	if r == 0 {
		return false
	}
	if r.isLeaf() {
		l := t.leaf(r)
		rec := t.find(l, key, t.hash(key))
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
	if len(key) == 0 {
		if n.value() == nil {
			return false
		}
		n.dropValue()
	} else {
		child, rest := n.slot(n.index(key[0])), key
		if getRef(child).isNode() {
			rest = key[1:]
		}
		if !t.delBelow(child, key[:1], rest) {
			return false
		}
		t.joinAround(n, key[0])
	}
	t.collapse(slot, lead, n)
	return true
}

// joinAround joins the child that has c with those behind and before it, if they have become small.
// Together with collapse it sees to it that a tree that shrinks does not keep the nodes of its great
// days.
func (t *tree) joinAround(n node, c byte) {
	if getRef(n.slot(n.index(c))).isNode() {
		return
	}
	if end := n.next(int(c) + 1); end < 256 {
		t.join(n, byte(end))
	}
	if begin := n.begin(c); begin > 0 {
		t.join(n, byte(begin))
	}
}

// join makes one leaf of the child that begins at c and the one before it, if they are small ones.
func (t *tree) join(n node, c byte) {
	i := n.index(c)
	into, from := n.slot(i-1), getRef(n.slot(i))
	a, b := t.weigh(getRef(into), 0), t.weigh(from, 0)
	if !a.plus(b).joinable() {
		return
	}
	switch {
	case getRef(into) == 0:
		setRef(into, from)
	case from != 0:
		t.move(into, from, nil)
	}
	n.shut(c)
}

// collapse replaces a node that has one child left by what that has.
func (t *tree) collapse(slot, lead []byte, n node) {
	if n.children() != 1 {
		return
	}
	r, v := getRef(n.slot(0)), n.value()
	longer := len(lead) + n.prefixLen()
	w := t.weigh(r, longer)
	if v != nil {
		w = w.plus(weight{1, longer})
	}
	if !w.joinable() || t.longBytes(r) > maxLeaf/joinShare {
		return
	}
	var leaf [refSize]byte
	above := append(append(make([]byte, 0, longer), lead...), n.prefix()...)
	if v != nil {
		copy(t.add(leaf[:], above), v)
	}
	if r != 0 {
		t.move(leaf[:], r, above)
	}
	t.nodes.free(getRef(slot).addr())
	copy(slot, leaf[:])
}

// A weight is what a leaf would have to hold.
type weight struct{ records, bytes int }

func (w weight) plus(v weight) weight { return weight{w.records + v.records, w.bytes + v.bytes} }

func (w weight) joinable() bool {
	return w.records <= maxEntries/joinShare && w.bytes <= maxLeaf/joinShare
}

// weigh returns the weight of a leaf whose keys get longer by some bytes. A node is too heavy.
func (t *tree) weigh(r ref, longer int) weight {
	switch {
	case r == 0:
		return weight{}
	case r.isNode():
		return weight{maxEntries, maxLeaf}
	}
	l := t.leaf(r)
	return weight{l.count(), l.end() + l.count()*longer}
}

// longBytes returns what the long keys of a leaf take, which does not lie in it. If they went up a
// path of nodes one by one, that would take the square of their length.
func (t *tree) longBytes(r ref) (sum int) {
	if r == 0 {
		return 0
	}
	l := t.leaf(r)
	for rec := firstRecord; rec < l.end(); rec += l.recSize(rec) {
		if l.body[rec] == longKey {
			sum += len(t.key(l, rec))
		}
	}
	return sum
}

// move adds the records of a leaf, with something before each key, to the one that slot refers to.
func (t *tree) move(slot []byte, from ref, before []byte) {
	l := t.leaf(from)
	key := append([]byte(nil), before...)
	for rec := firstRecord; rec < l.end(); rec += l.recSize(rec) {
		key = append(key[:len(before)], t.key(l, rec)...)
		copy(t.add(slot, key), l.value(rec))
		t.dropLong(l, rec)
	}
	t.freeLeaf(from)
}

// add adds a new key to the leaf that slot refers to. There is one if the slot is empty.
func (t *tree) add(slot, key []byte) (value []byte) {
	if getRef(slot) == 0 {
		first, _ := t.newLeaf(0, t.recordSize(key))
		setRef(slot, first)
	}
	return t.push(slot, t.leaf(getRef(slot)), key, t.hash(key))
}
