// Package urlfilter decides which URLs a crawl does not fetch.
//
//	scope := urlfilter.Scope{Reach: urlfilter.Domain}
//	seeds, err := urlfilter.Seeds(file, "seeds.txt")
//	for _, seed := range seeds {
//		scope.Add(seed)
//	}
//	…
//	why := urlfilter.Format{}.Check(url) // its form: hosts that are not public, broken links
//	ok := scope.Holds(url)               // the part of the web that the seeds span
//	verdict := deny.Match(url)           // the operator's list, and the line that decided
//
// [Format] rejects only URLs that are malformed beyond doubt. Package trap detects endless
// generated parts of a site, by the results of the crawl.
//
// All URLs must be canonical, as returned by package weburl. These are the URL Format Filter and
// the Explicit URL Filter of Ueda et al., "A parallel distributed crawler of producer-consumer
// modules".
//
// # What it does not do
//
// It looks nothing up: neither a host in DNS nor a page in robots.txt.
package urlfilter
