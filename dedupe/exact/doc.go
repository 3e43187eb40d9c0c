// Package exact remembers on disk which URLs were met, and never errs.
//
// A Bloom filter takes a few new URLs for old ones, whose pages are then lost. A [Set] does not. It
// gathers sightings in bounded memory and decides about all of them in one pass over what is known:
//
//	set, err := exact.Open(dir, exact.Options{})
//	err = set.Add(link, nil) // for each link
//	err = set.Merge()
//	for entry, err := range set.Entries(next) {
//		next = entry.Seq + 1 // store it with what becomes of entry.URL
//	}
//
// The idea is DRUM's (Lee et al., "IRLbot: scaling to 6 billion pages and beyond", 2009). Its
// sightings wait on disk, in buckets that fit into memory. Here they wait in memory, as one batch,
// behind a list of the latest URLs and a Bloom filter that knows which ones are surely new.
//
// # Shape
//
// Known URLs are sorted runs of fingerprints; each is twice as long as the next, or more. New URLs
// are numbered in the order of their first sight and written to a log, with the caller's bytes.
//
// # Durability
//
// What was added before a Merge that returned nil survives any crash: each URL that was new is in
// the log, once, under a number that never changes. What came later has to be added again.
//
// # Concurrency
//
// One process at a time may open a directory. A merge keeps other calls waiting.
//
// # Limits
//
// Two URLs with the same fingerprint are one. Fingerprints are SipHash with a random key, so nobody
// can make them collide. By chance, n*n/2^65 of n URLs do: 0.03 of a billion, 2.7 of ten billion,
// and with Options.Wide, which makes them 128 bits long, 10^-19 of ten billion.
//
// # Format
//
// FORMAT.md describes the files. All are checksummed.
package exact
