// Package dedupe tells in memory whether a URL was seen before, with a bounded rate of error.
//
//	seen := dedupe.New(dedupe.Options{Capacity: 100_000_000})
//	if seen.Add(url) {
//		// first sight: fetch it
//	}
//
// A [Filter] takes about two bytes for each URL. It treats URLs as plain bytes: canonicalize them
// first with package weburl, which lies beside it. Package exact answers the same question on disk
// and without errors, package urlfilter says which URLs are better left alone, and package simhash
// whether a page has really changed.
//
// # Promises
//
// A Filter never forgets, unless Options.Generations tells it to: once Add was called with a URL,
// that URL is never reported as new again, also after the Filter was written and loaded. It may
// take a new URL for an old one, with a probability of at most Options.Rate, however many URLs
// there are, as it grows in layers. Only if Options.MaxBytes keeps it from growing, the error grows
// instead, and [Filter.Stats] reports it. No site can craft URLs that make those of another site
// look old, since each Filter has a secret hash key.
package dedupe
