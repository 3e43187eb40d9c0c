package main

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/armon/go-radix"
	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/tidwall/btree"
)

type value [16]byte

// A structure is what is measured.
type structure struct {
	put     func(key string, v value)
	get     func(key string) bool
	prefix  func(prefix string) int // nil if it has no order
	reports func() (bytes int)      // what it says that it takes; nil if it says nothing
}

// makers make the structures. All own their keys, as they do in a crawler that got them out of a
// page.
var makers = map[string]func() structure{
	"map":         newMap,
	"sharded map": newShardedMap,
	"btree":       newBTree,
	"radix":       newRadix,
	"trie":        newTrie,
	"sharded":     newSharded,
	"cache":       newCache,
}

func newMap() structure {
	m := map[string]value{}
	return structure{
		put: func(key string, v value) { m[strings.Clone(key)] = v },
		get: func(key string) bool { _, found := m[key]; return found },
	}
}

// newShardedMap makes maps under 64 locks, the usual answer to many writers.
func newShardedMap() structure {
	type shard struct {
		mu sync.RWMutex
		m  map[string]value
	}
	var shards [64]shard
	for i := range shards {
		shards[i].m = map[string]value{}
	}
	seed := maphash.MakeSeed()
	of := func(key string) *shard { return &shards[maphash.String(seed, key)%64] }
	return structure{
		put: func(key string, v value) {
			s := of(key)
			s.mu.Lock()
			s.m[strings.Clone(key)] = v
			s.mu.Unlock()
		},
		get: func(key string) bool {
			s := of(key)
			s.mu.RLock()
			_, found := s.m[key]
			s.mu.RUnlock()
			return found
		},
	}
}

func newBTree() structure {
	var t btree.Map[string, value]
	return structure{
		put: func(key string, v value) { t.Set(strings.Clone(key), v) },
		get: func(key string) bool { _, found := t.Get(key); return found },
		prefix: func(prefix string) (n int) {
			t.Ascend(prefix, func(key string, _ value) bool {
				if !strings.HasPrefix(key, prefix) {
					return false
				}
				n++
				return true
			})
			return n
		},
	}
}

func newRadix() structure {
	t := radix.New()
	return structure{
		put: func(key string, v value) { t.Insert(strings.Clone(key), v) },
		get: func(key string) bool { _, found := t.Get(key); return found },
		prefix: func(prefix string) (n int) {
			t.WalkPrefix(prefix, func(string, any) bool { n++; return false })
			return n
		},
	}
}

func newTrie() structure {
	t := hostcache.NewTrie[value]()
	return structure{
		put:     func(key string, v value) { t.Set(key, v) },
		get:     func(key string) bool { _, found := t.Get(key); return found },
		prefix:  func(prefix string) int { return count(t.Prefix(prefix)) },
		reports: func() int { return t.Size().Bytes },
	}
}

func newSharded() structure {
	s := hostcache.NewSharded[value]()
	return structure{
		put:     func(key string, v value) { s.Set(key, v) },
		get:     func(key string) bool { _, found := s.Get(key); return found },
		prefix:  func(prefix string) int { return count(s.Prefix(prefix)) },
		reports: func() int { return s.Size().Bytes },
	}
}

func newCache() structure {
	c := hostcache.New[value](hostcache.Options{MaxBytes: -1})
	return structure{
		put:     func(key string, v value) { c.Set(key, v, 0) },
		get:     func(key string) bool { _, found := c.Get(key); return found },
		reports: func() int { return c.Stats().Bytes },
	}
}

func count(seq func(func(string, value) bool)) (n int) {
	for range seq {
		n++
	}
	return n
}
