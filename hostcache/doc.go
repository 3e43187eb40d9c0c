// Package hostcache maps host names to small values in little memory.
//
// A [Cache] answers what a crawler knows about a host, and asks once for what it does not know:
//
//	addrs := hostcache.New[[16]byte](hostcache.Options{MaxBytes: 1 << 30})
//	addr, err := addrs.Load(ctx, "www.example.com", resolve) // a hostcache.Loader
//	for host, addr := range addrs.Under("example.com") {
//		// the host of that name, and all below it
//	}
//
// Beneath it is a [Trie], a HAT-trie from byte strings to values, in the order of the keys, and
// [Sharded] is one for many writers. For names and values without pointers, tens of millions of
// entries take about as much memory as the names and values themselves, and the garbage collector
// does not look at them, however many there are.
//
// # Invariants
//
// At most one [Loader] runs for a host at any moment, as long as somebody waits for it. It runs
// under no lock, and whatever it does, panics included, all who wait are answered.
//
// No entry is shown after its time, or forgotten before it as long as Options.MaxBytes allows. The
// entries never take more than that; eviction and the removal of what has expired are done bit by
// bit by the calls that write, in constant time, amortised. No goroutine runs but those of loaders.
//
// # Durability
//
// [Cache.Save] replaces a file by a whole new one, or leaves it as it is. A crash within Save may
// leave a file beside it whose name ends in .tmp. [Open] refuses a file that is not to the last byte
// what Save wrote, and says at which byte. FORMAT.md describes it.
//
// # Costs
//
// Of ten million real host names with values of 16 bytes each takes 34 bytes, which is 0.94 of what
// it says, where a map takes 91. A get takes twice as long as the map's, a put one and a half times,
// and the collector does not notice. The command internal/bench/hostcache compares.
//
// # What it does not do
//
// It resolves no name and knows no clock but that of package time. It takes host names as they are:
// whoever asks has to spell a host in one way. It does not count what values point to.
package hostcache
