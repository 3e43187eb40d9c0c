// Package robots reads what a site asks of crawlers in its robots.txt, as RFC 9309 defines it.
//
//	file := robots.FromResponse(status, body)
//	rules := file.Rules("examplebot")
//	if rules.Allowed("https://example.com/private/page") { ... }
//
// # Invariants
//
// Parsing never fails: what cannot be understood is skipped and the rest holds. The longest
// matching pattern decides, Allow wins a tie, and what no pattern matches is allowed. No pattern
// takes more time than is linear in its length and the URL's, and a check allocates nothing if
// the URL is in canonical form already. /robots.txt itself is always allowed.
//
// Patterns and URLs are compared in one canonical form: what no URI may contain is escaped,
// %xx of unreserved characters is decoded, other escapes are upper-cased, and reserved
// characters stay as they are, so "/" and "%2F" differ. A literal * or $ in a URL is met by
// %2A or %24 in a pattern.
//
// Beyond the RFC the parser forgives what Google's reference parser forgives: misspelt and
// prefixed keys, a missing colon, a byte order mark, blanks inside of values. As there, a
// pattern that starts with neither / nor * matches nothing, and allowing a path that ends in
// /index.htm or /index.html allows its directory too.
//
// # Two engines
//
// A group of at most 64 plain prefixes is decided by github.com/temoto/robotstxt, which does
// those right and fast enough. It sees a canonical text written by this package, never the file.
// All other groups are decided here: temoto compiles each wildcard to an unanchored regular
// expression and ranks it by the length of the expression's text, so its verdicts differ from
// the RFC's and 500 KiB of wildcards would cost it tens of milliseconds per URL; and it scans
// all prefixes where this package searches. The engine here judges any group, to name the rule
// that decided, and tests hold both engines to equal verdicts.
//
// # What it does not do
//
// It fetches nothing and caches no file. It resolves no dot segments: check the URL that will
// be requested. Records it does not know are skipped.
package robots
