// Package exact remembers on disk which URLs were met, and never errs.
//
// A Bloom filter takes a few new URLs for old ones, whose pages are then lost. A [Set] does not. It
// gathers sightings and decides about all of them in one pass over what is known:
//
//	set, err := exact.Open(dir, exact.Options{})
//	err = set.Add(link, nil) // for each link
//	err = set.Merge()
//	for entry, err := range set.Entries(next) {
//		next = entry.Seq + 1 // store it with what becomes of entry.URL
//	}
//
// The idea is DRUM's (Lee et al., "IRLbot: scaling to 6 billion pages and beyond", 2009). For answers
// at once, put a Filter of package dedupe in front, as the example of Set does.
//
// # Shape
//
// Of a URL that waits, the fingerprint is in memory and the rest may be in a file. A list of the
// latest URLs keeps repetitions from waiting, and a Bloom filter tells which ones are surely new.
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
// One process at a time may open a directory. A merge keeps other calls waiting; walks go on.
//
// # Limits
//
// Two URLs with the same fingerprint are one. Fingerprints are SipHash with a random key, so nobody
// can make them collide. By chance, n*n/2^65 of n URLs do: 0.03 of a billion, 2.7 of ten billion,
// and with Options.Wide, which makes them 128 bits long, 10^-19 of ten billion.
//
// # Format
//
// FORMAT.md describes the files. Those that last are checksummed.
package exact
