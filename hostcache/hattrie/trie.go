// Package hattrie maps byte strings to values, sorted by key and in little memory.
//
//	var visits hattrie.Trie[uint32]
//	visits.Set(hattrie.Reverse("www.example.com"), 1)
//	n, found := visits.Get("com.example.www")
//	for key, n := range visits.Prefix("com.example.") {
//		// in ascending order
//	}
//
// A [Trie] is a HAT-trie (Askitis and Sinha 2007): a trie whose leaves are hash tables of a few
// hundred keys each. Keys share common prefixes, so with ten million real host names, labels
// reversed, and 16-byte values, an entry takes 34 bytes. A Go map takes 91.
//
// # Costs
//
// Get takes about twice the time of a Go map with millions of entries, Set one and a half times.
// That is the price of using 2.6 times less memory. The garbage collector takes no time, however
// many entries there are, provided the values are at most 128 bytes and have no pointers: then keys
// and values are in a few blocks of bytes. Other values are kept in slices beside the trie, which
// costs four more bytes and a cache miss. Note that string, netip.Addr and time.Time have pointers.
//
// # Reading the source
//
// trie.go is the API and values.go stores values. tree.go is the heart: the descent through nodes
// (node.go) to a leaf (leaf.go). burst.go splits leaves that have become too big, shrink.go joins
// those that have become small. scan.go iterates in order, and arena.go manages the memory.
package hattrie

import (
	"hash/maphash"
	"iter"
	"math"
)

// MaxKey is the length of the longest key.
const MaxKey = 4 << 10

// A Trie maps keys to values, sorted by key. The zero Trie is empty and ready to use, by one
// goroutine at a time. Any number of goroutines may read while none writes. A Trie must not be
// copied.
//
// It holds 14 GiB or more, which is more than 350 million host names, and 11 GiB if the bound of
// SetWithin rises in small steps; and up to four billion values that are not stored beside their keys.
type Trie[V any] struct {
	tree   tree
	values values[V]
}

// Get returns the value of a key.
func (t *Trie[V]) Get(key string) (v V, found bool) {
	b := t.tree.get(keyOf(key))
	if b == nil {
		return v, false
	}
	return t.values.load(b), true
}

// Set gives a key a value, and reports whether it had none before. It keeps no reference to the
// key. It panics if the key is longer than [MaxKey] or the trie is full.
func (t *Trie[V]) Set(key string, v V) (added bool) {
	if len(key) > MaxKey {
		panic("hattrie: key of more than 4096 bytes")
	}
	added, _ = t.SetWithin(math.MaxInt, key, v)
	return added
}

// SetWithin is Set for a trie in bounded memory: it takes no memory that would make the trie use more than
// max bytes, as reported by [Trie.Memory]. If it cannot do without, ok is false and it sets nothing; delete
// some entries and try again. Since memory is allocated in pieces of up to 64 KiB, or a 64th of it, max
// should be at least 256 KiB.
func (t *Trie[V]) SetWithin(max int, key string, v V) (added, ok bool) {
	if len(key) > MaxKey {
		panic("hattrie: key of more than 4096 bytes")
	}
	t.init()
	_, apart := t.values.memory()
	left, needs := max-apart, t.values.needs()
	if needs > 0 && t.tree.arena.reserved+needs > left && t.tree.get(keyOf(key)) == nil {
		return false, false
	}
	b, added := t.tree.put(keyOf(key), left-needs)
	if b == nil {
		return false, false
	}
	t.values.save(b, v, added)
	return added, true
}

// init makes the zero Trie usable.
func (t *Trie[V]) init() {
	if t.tree.seed == (maphash.Seed{}) {
		t.tree.seed = maphash.MakeSeed()
		t.values = newValues[V]()
		t.tree.width = t.values.width()
	}
}

// Delete removes a key, and reports whether it was there. Later entries reuse its memory. A chunk
// of memory, of up to 8 MiB, is returned to the collector when all of it is free.
func (t *Trie[V]) Delete(key string) (deleted bool) {
	k := keyOf(key)
	b := t.tree.get(k)
	if b == nil {
		return false
	}
	t.values.drop(b)
	return t.tree.del(k)
}

// Len returns the number of keys.
func (t *Trie[V]) Len() int { return t.tree.count }

// Prefix returns the entries whose keys start with a prefix, all for "", in the order of their keys.
// Entries may be set and deleted during the iteration. An entry that is there all the time is
// yielded once, others at most once. The cost depends on the number of those entries, not on the
// size of the trie.
func (t *Trie[V]) Prefix(prefix string) iter.Seq2[string, V] { return t.From(prefix, prefix) }

// From returns the entries that Prefix returns, starting at a key. The key need not exist.
func (t *Trie[V]) From(prefix, key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		s := scan{prefix: []byte(prefix), from: []byte(max(prefix, key))}
		var values []V
		for s.fill(&t.tree) {
			// The loop's body may delete entries, and others may get their places.
			values = values[:0]
			for _, it := range s.items {
				values = append(values, t.values.load(s.value(it, t.tree.width)))
			}
			for i, it := range s.items {
				if !yield(string(s.key(it)), values[i]) {
					return
				}
			}
		}
	}
}

// Near returns the first of the keys that are in the same piece of memory as a key would be, or the key
// itself if there is none. If SetWithin has no memory for a key, deleting entries from there on helps.
func (t *Trie[V]) Near(key string) string {
	s := scan{from: keyOf(key)}
	if l, _, _ := s.locate(&t.tree); l.block != nil {
		if s.copy(l, nil); len(s.items) > 0 {
			return string(s.key(s.items[0]))
		}
	}
	return key
}

// Memory returns the bytes in use by entries, without what values point to, and the bytes held:
// those in use, and those free for later entries.
func (t *Trie[V]) Memory() (used, reserved int) {
	used, reserved = t.values.memory()
	return used + t.tree.arena.used, reserved + t.tree.arena.reserved
}

// Reverse returns a host name with its labels in reverse order, "com.example.www" for
// "www.example.com", so that the hosts of a domain are next to each other in a Trie. Reversing the
// result gives the name again, for any string. To split a URL, see Host in package dedupe/weburl.
func Reverse(host string) string { return string(AppendReverse(nil, host)) }

// AppendReverse appends what Reverse returns to b. It allocates only if b is too short.
func AppendReverse(b []byte, host string) []byte {
	end := len(host)
	for i := end - 1; i >= 0; i-- {
		if host[i] == '.' {
			b = append(append(b, host[i+1:end]...), '.')
			end = i
		}
	}
	return append(b, host[:end]...)
}
