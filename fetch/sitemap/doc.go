// Package sitemap reads the lists of URLs that sites publish: sitemaps, sitemap indexes and feeds.
//
//	for entry, err := range sitemap.Entries(response.Body, url) {
//
// It reads sitemap.xml, sitemap indexes, lists of URLs as text, RSS 0.9 to 2.0 and Atom, each of
// them optionally gzipped, in any encoding of the Encoding Standard.
//
// # Promise
//
// A broken document yields everything that can be read from it. A stray angle bracket, an
// ampersand, an unclosed element, a wrong encoding declaration or a wrong namespace costs at most
// the entry that contains it. A comment or CDATA section reaches to the next end of one, or to that of
// the document, and a processing instruction up to 4 KiB: what is between is not read. Entities
// that a document declares are not resolved, neither its own nor external ones. A document in UTF-8
// may declare another encoding, if at least four letters beyond ASCII stand within its first 64 KiB.
//
// # Cost
//
// A document is read as a stream. Memory is bounded by [MaxToken], whatever the size, or about 20 times
// that while a tag with a megabyte of attributes is read.
//
// # What it does not do
//
// The caller decides whether a URL may be listed there: the protocol requires the same host. The fields
// changefreq and priority are ignored: most of them are set once and never updated.
package sitemap
