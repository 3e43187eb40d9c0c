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
// the same content is a trap.
//
// Anybody can link to any number of pages that a host does not have, and some hosts answer each of
// these requests with the same page and status 200. A hundred such links would keep real pages of
// the pattern out. So do not report a known content to [Limits.Fetched] if only other sites have
// linked to the page. The price: a trap that only other sites link to is not found, and costs what the
// crawl allows each host.
//
// All URLs must be canonical, as returned by package weburl.
package trap
