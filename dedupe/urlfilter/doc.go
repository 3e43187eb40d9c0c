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
//	why = limits.Admit(url)              // per host and pattern, and traps
//
// A trap is a part of a site that a server makes up without end: calendars, session ids in links,
// paths that repeat themselves. No URL gives a trap away for certain. A date long ago is a
// newspaper's archive, and an id is a product. So [Format] rejects only what is malformed beyond
// doubt, and [Limits] looks at this crawl: a pattern of URLs that leads to the same contents again
// and again is a trap.
//
// All URLs are canonical, as made by package weburl. These are the URL Format Filter and the
// Explicit URL Filter of Ueda et al., "A parallel distributed crawler of producer-consumer
// modules".
//
// # What it does not do
//
// It looks nothing up: neither a host in DNS nor a page in robots.txt.
package urlfilter
