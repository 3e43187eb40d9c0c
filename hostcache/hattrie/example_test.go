package hattrie_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/hostcache/hattrie"
)

func Example() {
	var visits hattrie.Trie[int]
	for _, host := range []string{"example.com", "www.example.com", "example-x.com", "www.example.com"} {
		key := hattrie.Reverse(host)
		n, _ := visits.Get(key)
		visits.Set(key, n+1)
	}
	for key, n := range visits.Prefix("com.example.") {
		fmt.Println(hattrie.Reverse(key), n)
	}
	visits.Delete("com.example")
	fmt.Println(visits.Len())
	// Output:
	// www.example.com 2
	// 2
}

// ExampleTrie_SetWithin keeps a trie within a megabyte: it makes room by deleting in the order of
// the keys.
func ExampleTrie_SetWithin() {
	var trie hattrie.Trie[[16]byte]
	for i := range 100_000 {
		key := fmt.Sprintf("com.example.%d", i)
		for {
			if _, ok := trie.SetWithin(1<<20, key, [16]byte{}); ok {
				break
			}
			for oldest := range trie.Prefix("") {
				trie.Delete(oldest)
				break
			}
		}
	}
	_, reserved := trie.Memory()
	fmt.Println(reserved <= 1<<20, trie.Len() > 10_000)
	// Output: true true
}
