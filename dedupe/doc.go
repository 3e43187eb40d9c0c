// Package dedupe remembers in memory which URLs were seen, with a bounded rate of error.
//
//	seen := dedupe.New(dedupe.Options{Capacity: 100_000_000})
//	if seen.Add(url) {
//		// new: fetch it
//	}
//
// A [Filter] takes about two bytes per URL, and Add less than a microsecond. It compares URLs byte
// by byte: canonicalize them first with the sub-package weburl. The sub-package exact answers the
// same question on disk and without errors, urlfilter says which URLs not to fetch, and simhash
// whether a page has really changed. A [LinkCache] in front of all of them skips recent links.
//
// # Promises
//
// A Filter never forgets a URL, unless Options.Generations says so: after Add, the URL is never
// reported as new again, even after the Filter was saved and loaded. It may take a new URL for a
// known one, with a probability of at most Options.Rate. It grows in layers, so this holds for any
// number of URLs. If Options.MaxBytes keeps it from growing, the error grows instead, and
// [Filter.Stats] reports it. No site can craft URLs that make those of another site look known,
// since each Filter has a secret hash key.
//
// Its methods, and those of a LinkCache, are safe for concurrent use. It keeps no goroutine
// running, so it needs no Close.
package dedupe
