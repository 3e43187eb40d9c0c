package main

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/armon/go-radix"
	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/hostcache/hattrie"
	"github.com/tidwall/btree"
)

type value [16]byte

// A structure is a subject of the measurement.
type structure struct {
	plain   bool // takes host names as they are, not with reversed labels
	put     func(key string, v value)
	get     func(key string) bool
	prefix  func(prefix string) int // nil if it is unordered
	reports func() (bytes int)      // its own estimate of its memory; nil if it has none
}

// makers create the structures. All of them own their keys, because a crawler's keys are parts of
// pages that must not stay in memory.
var makers = map[string]func() structure{
	"map":         newMap,
	"sharded map": newShardedMap,
	"btree":       newBTree,
	"radix":       newRadix,
	"trie":        newTrie,
	"cache":       newCache,
}

func newMap() structure {
	m := map[string]value{}
	return structure{
		put: func(key string, v value) { m[strings.Clone(key)] = v },
		get: func(key string) bool { _, found := m[key]; return found },
	}
}

// newShardedMap returns maps under 64 locks, the usual solution for many writers.
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
	var t hattrie.Trie[value]
	return structure{
		put:     func(key string, v value) { t.Set(key, v) },
		get:     func(key string) bool { _, found := t.Get(key); return found },
		prefix:  func(prefix string) int { return count(t.Prefix(prefix)) },
		reports: func() int { used, _ := t.Memory(); return used },
	}
}

// newCache returns a cache, which reverses the labels itself.
func newCache() structure {
	c := hostcache.New[value](hostcache.Options{MaxBytes: -1})
	return structure{
		plain:   true,
		put:     func(host string, v value) { c.Set(host, v, time.Hour) },
		get:     func(host string) bool { _, found := c.Get(host); return found },
		prefix:  func(prefix string) int { return count(c.Under(strings.TrimSuffix(prefix, "."))) },
		reports: func() int { return c.Stats().Bytes },
	}
}

func count(seq func(func(string, value) bool)) (n int) {
	for range seq {
		n++
	}
	return n
}
