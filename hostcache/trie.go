package hostcache

import "iter"

// A Trie maps byte strings to values, in the order of the keys. It is a HAT-trie, by Askitis and
// Sinha (2007): a trie whose leaves are hash tables of some hundred keys each.
//
// Values without pointers of up to 128 bytes lie beside their keys, and then the collector has
// nothing to walk through, however many there are. Bigger ones, or values with pointers, lie in
// chunks of their own: that costs four bytes per entry and a cache miss per access, and those with
// pointers cost the collector what they would in any slice. Note that string, netip.Addr and
// time.Time have pointers; the bytes of an address and a Unix time do not.
//
// It has room for 32 GiB of keys with the values beside them, about a billion hosts, and for four
// billion other values; Set panics when that is not enough. A [Sharded] has sixteen times as much.
//
// It is not safe for concurrent use. Any number of goroutines may read while none writes, though;
// [Sharded] is for writers too.
type Trie[V any] struct {
	tree  tree
	store store[V]
}

// NewTrie returns an empty Trie.
func NewTrie[V any]() *Trie[V] {
	t := &Trie[V]{store: newStore[V]()}
	t.tree = newTree(t.store.width())
	return t
}

// Get returns the value of a key, and whether there is one.
func (t *Trie[V]) Get(key string) (v V, found bool) {
	b := t.tree.get(keyOf(key))
	if b == nil {
		return v, false
	}
	return t.store.load(b), true
}

// Set gives a key a value, and reports whether it had none before. The Trie keeps no reference to
// the key.
func (t *Trie[V]) Set(key string, v V) (added bool) {
	b, added := t.tree.put(keyOf(key))
	t.store.save(b, v, added)
	return added
}

// Delete removes a key, and reports whether it was there. The memory goes to later entries, or
// back to the collector when a whole chunk of it, up to 8 MiB, is free; that of values that do not
// lie beside their keys, when the last of them is deleted.
func (t *Trie[V]) Delete(key string) (deleted bool) {
	k := keyOf(key)
	b := t.tree.get(k)
	if b == nil {
		return false
	}
	t.store.drop(b)
	return t.tree.del(k)
}

// Len returns the number of keys.
func (t *Trie[V]) Len() int { return t.tree.count }

// LongestPrefix returns the longest of the keys that s begins with, and its value.
func (t *Trie[V]) LongestPrefix(s string) (key string, v V, found bool) {
	b, n := t.tree.longest(keyOf(s))
	if b == nil {
		return "", v, false
	}
	return s[:n], t.store.load(b), true
}

// All returns all entries in the order of their keys. Entries may be set and deleted meanwhile: of
// those it has not come to yet it shows some new ones and leaves out some deleted ones, and it
// shows no key twice.
func (t *Trie[V]) All() iter.Seq2[string, V] { return t.Prefix("") }

// Prefix is All for the keys that begin with a prefix. What it costs depends on their number only.
func (t *Trie[V]) Prefix(prefix string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		s := newStream(&t.tree, keyOf(prefix), t.store.load, func() {}, func() {})
		for key, v := range merge([]*stream[V]{s}) {
			if !yield(string(key), v) {
				return
			}
		}
	}
}

// A Size is the memory of a [Trie] or a [Sharded], apart from some kilobytes that an empty one takes.
type Size struct {
	Entries  int
	Bytes    int // that the entries take, without what their values point to
	Reserved int // that are held: Bytes and what is free for later entries
}

// Size returns the number of entries and the memory.
func (t *Trie[V]) Size() Size {
	return Size{
		Entries:  t.tree.count,
		Bytes:    t.tree.bytes() + t.store.bytes(),
		Reserved: t.tree.reserved() + t.store.reserved(),
	}
}
