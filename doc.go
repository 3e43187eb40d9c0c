// Package spinneret is a map: the library is in its sub-packages. Each one does one job of a web
// crawler, imports none of the others, and is useful alone.
//
//   - scheduler decides which URL may be fetched next, and when.
//   - robots answers whether robots.txt allows a URL (RFC 9309).
//   - fetch gets one URL within limits and finds the links on it.
//   - dedupe canonicalizes URLs and tells whether a URL was seen before.
//   - archive keeps every version of a page as WARC 1.1 and finds it by URL and time.
//   - hostcache remembers small values about hosts in little memory.
//   - revisit decides when to visit a page again.
//   - satstore stores records by the time when each is next due.
//   - pagerank ranks discovered pages during a crawl.
//
// Their APIs use plain types: string, []byte, [net/netip.Addr], [time.Time]. You can add any of
// them to an existing crawler, or replace any by your own code. The example of this package (in
// example_test.go) stacks four of them under a net/http client.
//
// examples/threepackages is a small crawler from three packages. examples/fullcrawler combines all
// of them. Run it without arguments to watch a polite crawl of a small web that it serves itself on
// the loopback interface:
//
//	go run ./examples/fullcrawler
package spinneret
