// Package trap detects endless generated parts of a site: calendars, session ids in links, searches
// that link to searches.
//
//	var limits trap.Limits
//	if why := limits.Admit(url); why != urlfilter.Fine {
//		continue
//	}
//	…
//	limits.Fetched(url, known) // was its content seen before?
//
// A URL alone does not prove a trap. An old date may belong to a newspaper's archive, and an id to
// a product. So [Limits] looks at the results of the crawl: a pattern of URLs whose pages repeat
// the same content is a trap. It also bounds the URLs of a host and of a pattern.
//
// All URLs must be canonical, as returned by package weburl.
package trap
