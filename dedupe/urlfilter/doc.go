// Package urlfilter decides which URLs a crawl leaves alone.
//
//	scope := urlfilter.Scope{Reach: urlfilter.Domain}
//	seeds, err := urlfilter.Seeds(file, "seeds.txt")
//	for _, seed := range seeds {
//		scope.Add(seed)
//	}
//	…
//	why := urlfilter.Format{}.Check(url) // its form: hosts that are not public, broken links
//	ok := scope.Holds(url)               // what the seeds span
//	verdict := deny.Match(url)           // the operator's list, and the line that decided
//
// [Format] rejects only what is malformed beyond doubt. Package trap finds the parts of a site that a
// server makes up without end, by what the crawl meets there.
//
// All URLs are canonical, as made by package weburl. These are the URL Format Filter and the
// Explicit URL Filter of Ueda et al., "A parallel distributed crawler of producer-consumer
// modules".
//
// # What it does not do
//
// It looks nothing up: neither a host in DNS nor a page in robots.txt.
package urlfilter
