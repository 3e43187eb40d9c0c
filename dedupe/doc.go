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
// # Invariants
//
// Canonical(Canonical(x)) == Canonical(x), and the result is ASCII, http or https, and at most
// [MaxLength] bytes long.
//
// A Filter never forgets: once Add was called with a URL, it is never reported as new again. It
// may rarely take a new URL for an old one, with a probability of at most Options.Rate until
// Options.Capacity URLs are in it. No site can choose its URLs so that those of another one are
// hit, since each Filter has a hash seed of its own; it can only fill the Filter up.
//
// # What it does not do
//
// A Filter lives in memory and ends with the process. Past its capacity it goes on without
// growing, so its error grows; [Filter.Stats] says what the error is now. Two URLs that differ in
// form but lead to the same page, such as those with session ids, stay two URLs.
package dedupe
