// Package dedupe tells whether a URL was met before.
//
// [Canonical] gives all spellings of one URL one form, and a [Filter] remembers the forms it was
// shown:
//
//	seen := dedupe.New(dedupe.Options{Capacity: 100_000_000})
//	url, err := dedupe.Canonical(link)
//	if err == nil && seen.Add(url) {
//		// first sight: fetch it
//	}
//
// Beside it, package exact is for those who may lose no URL at all, package urlfilter says which
// URLs are better left alone, and package simhash whether a page has really changed.
//
// # Invariants
//
// Canonical(Canonical(x)) == Canonical(x), and the result is ASCII, http or https, and at most
// [MaxLength] bytes long. The same holds for each choice of [Steps].
//
// A Filter never forgets, unless it is told to by Options.Generations: once Add was called with a
// URL, it is never reported as new again, also after the Filter was written and loaded. It may
// rarely take a new URL for an old one, with a probability of at most Options.Rate, however many
// URLs are in it, as it grows in layers; only where Options.MaxBytes keeps it from growing, the
// error grows instead, and [Filter.Stats] says what it is. No site can choose its URLs so that
// those of another one are hit, since each Filter has a secret hash key of its own; it can only
// fill the Filter up.
//
// # What it does not do
//
// Two URLs that differ in form but lead to the same page stay two URLs, unless one of the [Steps]
// makes them one.
package dedupe
