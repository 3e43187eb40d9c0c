// Package trap detects the parts of a site that a server makes up without end: calendars, session ids
// in links, searches that lead to searches.
//
//	var limits trap.Limits
//	if why := limits.Admit(url); why != urlfilter.Fine {
//		continue
//	}
//	…
//	limits.Fetched(url, known) // was its content seen before?
//
// No URL gives a trap away for certain. A date long ago is a newspaper's archive, and an id is a
// product. So [Limits] looks at this crawl: a pattern of URLs that leads to the same contents again
// and again is a trap. It also bounds the URLs of a host and of a pattern.
//
// All URLs are canonical, as package weburl makes them.
package trap
