// Package spinneret is a map: the library lives in its sub-packages. Each of them does one
// job of a web crawler, imports none of the others, and is useful alone.
//
//   - scheduler hands out URLs so that no host and no address is visited too often.
//   - dedupe puts URLs into one canonical form and tells whether one was met before.
//   - robots reads what a site asks of crawlers (RFC 9309).
//   - fetch gets one URL within limits, and finds the links on it.
//   - hostcache maps host names to small values in little memory.
//   - revisit decides when a page should be visited again.
//   - satstore keeps records by the time they are next needed.
//   - pagerank ranks discovered pages while the crawl goes on.
//   - archive keeps every version as WARC 1.1 files, and finds it by URL and time.
//
// Plain types cross the borders: string, []byte, [net/netip.Addr], [time.Time]. So any of
// them can be put into an existing crawler, and any can be replaced by something else. The example
// below puts four of them under a client of net/http.
//
// Which of them to put together for a small crawler is shown in examples/threerooms. The program
// examples/fullcrawler wires most of them; run it without arguments to watch a polite
// crawl of a small web that it serves itself on the loopback interface:
//
//	go run ./examples/fullcrawler
package spinneret
