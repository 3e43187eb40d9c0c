package hattrie_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/hostcache/hattrie"
)

func Example() {
	var visits hattrie.Trie[int]
	for _, host := range []string{"com.example", "com.example.www", "com.example-x", "com.example.www"} {
		n, _ := visits.Get(host)
		visits.Set(host, n+1)
	}
	for host, n := range visits.Prefix("com.example.") {
		fmt.Println(host, n)
	}
	visits.Delete("com.example")
	fmt.Println(visits.Len())
	// Output:
	// com.example.www 2
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
			for oldest := range trie.All() {
				trie.Delete(oldest)
				break
			}
		}
	}
	_, reserved := trie.Memory()
	fmt.Println(reserved <= 1<<20, trie.Len() > 10_000)
	// Output: true true
}
