// Package exact remembers on disk which URLs were seen, exactly and in bounded memory.
//
//	seen, err := exact.Open(dir, exact.Options{})
//	added, err := seen.Add(url)
//	if err == nil && added {
//		// first sight: fetch it
//	}
//
// A Bloom filter takes a few new URLs for old ones, and their pages are lost. A [Set] makes no such
// mistake, and survives crashes. Add answers at once. [Set.Defer] and [Set.Merge] answer later, for
// many URLs in one pass over the disk. [Set.Entries] lists the URLs in the order of their first
// sight, so that a crawler that was killed finds those that it was told about and did not act on.
//
// # Shape
//
// New URLs are appended to a log. Their fingerprints are in a table in memory, and when that is
// full, a sweep merges it into the index, a sorted file, a few pages with each Add. So Add has to
// look at the list of the latest URLs, a Bloom filter, two tables and one page, and mostly finds
// the answer before the page. Deferred URLs wait in memory, and beyond that in a file (DRUM; Lee
// et al., "IRLbot: scaling to 6 billion pages and beyond", 2009).
//
// # Durability
//
// A URL that was added survives kill -9. After [Set.Sync] or [Set.Merge] returned nil, it also
// survives a power failure; what was added since is lost from some point on, as if it had not been
// added. A URL that is deferred and not merged is lost by either.
//
// # Limits
//
// Two URLs with the same fingerprint are one. Fingerprints are SipHash with a secret random key, so
// nobody can make them collide. By chance, n*n/2^65 of n URLs do: 0.03 of a billion, and with
// Options.Wide, which makes them 128 bits, 10^-21 of a billion. Memory per URL is up to you; see
// Options. On disk, a URL takes its length and 9 bytes, until it is trimmed, and 8 or 16 bytes.
//
// # Format
//
// FORMAT.md describes the files. Everything that lasts is checksummed.
package exact
