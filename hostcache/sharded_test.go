package hostcache_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// TestShardedWithManyWriters has goroutines set, count, delete and walk at the same time. What each
// one does to its own keys has to be there in the end, and no count may be lost.
func TestShardedWithManyWriters(t *testing.T) {
	const writers, keys = 8, 1500
	s := hostcache.NewSharded[string]()
	counts := hostcache.NewSharded[int]()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range keys {
				key := fmt.Sprintf("%d.%d", i, w)
				s.Set(key, key)
				if i%3 == 0 {
					s.Delete(key)
				}
				counts.Update(fmt.Sprint(i%100), func(old int, _ bool) int { return old + 1 })
				if v, found := s.Get(fmt.Sprintf("%d.%d", i, w^1)); found {
					require.Equal(t, fmt.Sprintf("%d.%d", i, w^1), v)
				}
			}
		})
		wg.Go(func() {
			last := ""
			for key, v := range s.Prefix(fmt.Sprint(w)) {
				if key != v || key <= last {
					t.Errorf("%q has %q, after %q", key, v, last)
				}
				last = key
			}
		})
	}
	wg.Wait()
	require.Equal(t, writers*keys*2/3, s.Len())
	total := 0
	for _, n := range counts.All() {
		total += n
	}
	require.Equal(t, writers*keys, total)
}

// TestTrieReadByMany has the race detector look at readers of one trie.
func TestTrieReadByMany(t *testing.T) {
	trie := hostcache.NewTrie[int]()
	for i := range 3000 {
		trie.Set(fmt.Sprint(i), i)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3000 {
				if v, found := trie.Get(fmt.Sprint(i)); !found || v != i {
					t.Errorf("%d has %d, %v", i, v, found)
				}
			}
			n := 0
			for range trie.Prefix("2") {
				n++
			}
			if n != 1111 {
				t.Errorf("%d keys begin with 2", n)
			}
			_, _, _ = trie.LongestPrefix("30001")
		})
	}
	wg.Wait()
}
