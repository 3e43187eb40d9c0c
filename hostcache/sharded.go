package hostcache

import (
	"hash/maphash"
	"iter"
	"sync"
)

// shardCount makes it rare that two goroutines meet in a shard. It is a power of two. More of them
// cost memory: a trie with fewer keys says less about each of them.
const (
	shardBits  = 4
	shardCount = 1 << shardBits
)

// A Sharded is a [Trie] that many goroutines may write to. Keys are spread over sixteen tries by
// their hash, each with a lock of its own, on which readers wait for writers only. An iteration
// merges the tries, which costs some more. Its methods are safe for concurrent use.
type Sharded[V any] struct {
	seed   maphash.Seed
	shards [shardCount]lockedTrie[V]
}

type lockedTrie[V any] struct {
	mu   sync.RWMutex
	trie Trie[V]
	_    [64]byte // keeps the locks of two shards off one cache line
}

// NewSharded returns an empty Sharded.
func NewSharded[V any]() *Sharded[V] {
	s := &Sharded[V]{seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].trie = *NewTrie[V]()
	}
	return s
}

func (s *Sharded[V]) shard(key string) *lockedTrie[V] {
	return &s.shards[maphash.String(s.seed, key)>>(64-shardBits)]
}

// Get is [Trie.Get].
func (s *Sharded[V]) Get(key string) (v V, found bool) {
	shard := s.shard(key)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.trie.Get(key)
}

// Set is [Trie.Set].
func (s *Sharded[V]) Set(key string, v V) (added bool) {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.trie.Set(key, v)
}

// Update sets the value of a key to what change makes of the present one, and reports whether
// there was none, so that change got the zero V. No other call sees or changes the entry meanwhile;
// change must not call methods of the Sharded.
func (s *Sharded[V]) Update(key string, change func(old V, found bool) V) (added bool) {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	old, found := shard.trie.Get(key)
	shard.trie.Set(key, change(old, found))
	return !found
}

// Delete is [Trie.Delete].
func (s *Sharded[V]) Delete(key string) (deleted bool) {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.trie.Delete(key)
}

// Len returns the number of keys.
func (s *Sharded[V]) Len() int { return s.Size().Entries }

// LongestPrefix is [Trie.LongestPrefix]. It asks all shards.
func (s *Sharded[V]) LongestPrefix(text string) (key string, v V, found bool) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.RLock()
		k, value, ok := shard.trie.LongestPrefix(text)
		shard.mu.RUnlock()
		if ok && (!found || len(k) > len(key)) {
			key, v, found = k, value, true
		}
	}
	return key, v, found
}

// All is [Trie.All]. No lock is held while the loop's body runs.
func (s *Sharded[V]) All() iter.Seq2[string, V] { return s.Prefix("") }

// Prefix is [Trie.Prefix]. No lock is held while the loop's body runs.
func (s *Sharded[V]) Prefix(prefix string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		var all []*stream[V]
		for i := range s.shards {
			shard := &s.shards[i]
			t := &shard.trie
			all = append(all, newStream(&t.tree, keyOf(prefix), t.store.load,
				shard.mu.RLock, shard.mu.RUnlock))
		}
		for key, v := range merge(all) {
			if !yield(string(key), v) {
				return
			}
		}
	}
}

// Size returns the number of entries and the memory of all shards.
func (s *Sharded[V]) Size() (total Size) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.RLock()
		one := shard.trie.Size()
		shard.mu.RUnlock()
		total.Entries += one.Entries
		total.Bytes += one.Bytes
		total.Reserved += one.Reserved
	}
	return total
}
