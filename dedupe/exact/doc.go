// Package exact remembers on disk which URLs were seen, exactly and in bounded memory.
//
//	seen, err := exact.Open(dir, exact.Options{})
//	added, err := seen.Add(url)
//	if err == nil && added {
//		// new: fetch it
//	}
//
// A Bloom filter takes a few new URLs for known ones, and their pages are lost. A [Set] makes no
// such mistake, and survives crashes. Add answers immediately. [Set.Defer] and [Set.Merge] answer
// later, for many URLs in one pass over the disk. [Set.Entries] lists the URLs in the order in
// which they were added, so that a crawler that was killed finds the new URLs that it had not
// processed yet.
//
// # Shape
//
// New URLs are appended to a log. Their fingerprints are in a table in memory. When that is full, a
// sweep merges it into the index, a sorted file, a few pages with each Add. So Add looks at the
// list of the latest URLs, a Bloom filter, two tables and one page of the index, and rarely gets as
// far as the page. Deferred URLs wait in memory, and in a file if there are more (DRUM; Lee et al.,
// "IRLbot: scaling to 6 billion pages and beyond", 2009). A merge of them goes in small steps, too,
// and other calls come in between; only Merge and Close wait for all of it.
//
// # Durability
//
// A URL that was added survives kill -9. After [Set.Sync] or [Set.Merge] returned nil, it also
// survives a power failure. Of the URLs added since then, a power failure loses a suffix, as if
// they had never been added. Deferred URLs that are not merged do not survive either.
//
// # Limits
//
// Two URLs with the same fingerprint count as one. Fingerprints are SipHash with a secret random
// key, so nobody can make them collide. By chance, n*n/2^65 of n URLs do: 0.03 of a billion, and 3
// of ten billion. The memory per URL is configurable; see Options. On disk, a URL takes 8 bytes, plus
// its length and 9 bytes until it is trimmed.
//
// # Format
//
// FORMAT.md describes the files. Everything durable is checksummed.
package exact
