// Package robots reads what a site asks of crawlers: in robots.txt, as RFC 9309 defines it, and in
// the header fields and meta elements of its pages.
//
//	cache := robots.NewCache(robots.Options{Agent: "examplebot"})
//	rules, err := cache.Get(ctx, url, fetch)
//	if err == nil && rules.Allowed(url) { ... }
//
// # Invariants
//
// Parsing never fails: what cannot be understood is skipped and the rest holds. The longest
// matching pattern decides, Allow wins a tie, and what no pattern matches is allowed. Comparing one
// pattern with a URL looks at no octet of the URL twice, and a check allocates nothing if the URL
// is in canonical form. /robots.txt itself is always allowed.
//
// Patterns and URLs are compared in one canonical form: what no URI may contain is escaped, %xx of
// unreserved characters is decoded, other escapes are upper-cased, and reserved characters stay, so
// "/" and "%2F" differ. A literal * or $ in a URL is met by %2A or %24 in a pattern. Beyond the RFC
// the parser forgives what Google's forgives; testdata/vectors/choices has the list, with reasons.
//
// # Two engines
//
// A group of at most 64 plain prefixes is decided by github.com/temoto/robotstxt, which does those
// right and fast enough. It sees a canonical text written by this package, never the file. All
// other groups are decided here: temoto ranks wildcards by the length of a regular expression and
// does not anchor it, so its verdicts differ from the RFC's, and 500 KiB of them cost it tens of
// milliseconds per URL. The engine here judges any group, to name the rule that decided, and tests
// hold both to equal verdicts.
//
// # What it does not do
//
// It opens no socket: [Cache] says what to fetch, or calls a function. It enforces nothing that
// concerns the use of a page, and resolves no dot segments: check the URL that will be requested.
package robots
