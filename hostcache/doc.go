// Package hostcache remembers things about hosts, for a time and in bounded memory.
//
//	addrs, err := hostcache.Open[netip.Addr]("addrs", hostcache.Options{})
//	...
//	addr, err := addrs.Load(ctx, "www.example.com", lookup) // a Loader
//	for host, addr := range addrs.Under("example.com") {
//		// that host and all below it
//	}
//	err = addrs.Save()
//
// A [Cache] calls the [Loader] once for all callers that ask at the same time, keeps the result for
// as long as the loader says, and remembers that a host has no value, too. Package resolve, below
// this one, is such a cache for addresses. Package hattrie is the trie that entries are kept in.
//
// # Promises
//
// No lookup returns an entry after its time. None is dropped before, except to stay within Options.MaxBytes:
// the cache never holds more memory than that for its entries. Eviction and the removal of expired
// entries are done by the calls that write, in constant amortised time. No goroutines run but
// those of loaders.
//
// # Durability
//
// [Cache.Save] replaces the file by a new one or leaves it as it is, whatever happens. A crash may
// leave a file with a name that ends in .new beside it. [Open] finds every damage of the file, says
// where it is, and believes nothing behind it. To keep entries in another place, read them with
// [Cache.All] and put them back with [Cache.Restore]; an [Entry] takes encoding/json.
//
// # Costs
//
// An entry takes about ten bytes more than in a hattrie.Trie: 43 for ten million real host names
// and 16-byte values, where a Go map takes 91. For values without pointers of up to 120 bytes the
// garbage collector takes no time, however many entries there are. A hit takes about twice the time
// of a map. A walk with All or Under shows some million entries per second.
//
// # Reading the source
//
// cache.go is the heart, evict.go decides what goes, load.go waits for loaders. file.go is Open and
// Save (FORMAT.md describes the file), and codec.go turns values into bytes.
package hostcache
