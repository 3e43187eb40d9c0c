// Package sitemap reads what a site says that it has: sitemaps, sitemap indexes and feeds.
//
//	for entry, err := range sitemap.Entries(body, url) {
//
// It takes sitemap.xml, sitemap indexes, lists of URLs as text, RSS 0.9 to 2.0 and Atom, each of
// them gzipped or not, in any encoding of the Encoding Standard.
//
// # Promise
//
// A broken document gives what can be read of it. A stray angle bracket, an ampersand, an element
// that is never closed, an encoding that is not the declared one or a wrong namespace costs at
// most the entry that it is in. Entities that a document declares are not resolved, neither its
// own nor external ones.
//
// # Cost
//
// A document is read as a stream. Memory is bounded by [MaxToken], whatever the size.
//
// # What it does not do
//
// Whether a URL may be listed there is left to the caller: the protocol wants the same host.
package sitemap
