// Package hostcache caches values per host, for a limited time and in bounded memory.
//
//	addrs, err := hostcache.Open[netip.Addr]("addrs", hostcache.Options{})
//	...
//	addr, err := addrs.Load(ctx, "www.example.com", lookup) // a Loader
//	for host, addr := range addrs.Under("example.com") {
//		// that host and all below it
//	}
//	err = addrs.Save()
//
// A [Cache] calls the [Loader] once for all concurrent callers and stores the result for the time
// that the loader returns. It also stores that a host has no value. The sub-package resolve is such
// a cache for addresses; hattrie is the trie that holds the entries.
//
// # Promises
//
// No lookup returns an expired entry. Entries are dropped earlier only to stay within
// Options.MaxBytes: the cache never uses more memory than that for its entries. Calls that write
// evict entries and remove expired ones, in constant amortized time. No goroutines run except those
// of loaders.
//
// # Durability
//
// [Cache.Save] replaces the file atomically. A crash may leave a file beside it whose name ends in
// .new; [Open] removes those that nobody has written to for a minute. It detects any damage to the
// file, reports its offset, and ignores everything after it.
//
// # Costs
//
// With ten million real host names and 16-byte values, an entry takes 43 bytes, about ten more than
// in a hattrie.Trie; a Go map takes 91. If values have no pointers and at most 120 bytes, the cache
// costs the garbage collector no time. A hit takes about twice as long as in a map. Under
// visits more than a million entries per second.
//
// # Reading the source
//
// cache.go is the heart, evict.go chooses what to evict, load.go waits for loaders. file.go has
// Open and Save (FORMAT.md describes the file), and codec.go encodes values.
package hostcache
