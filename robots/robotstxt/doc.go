// Package robotstxt parses robots.txt files and matches URLs against them, as RFC 9309 defines it.
//
//	rules := robotstxt.Parse(body).Rules("examplebot")
//	if rules.Allowed("https://example.com/page") { ... }
//
// It opens no socket and does not link net/http. To fetch and cache robots.txt files, use package
// robots.
//
// # Invariants
//
// Parsing never fails: malformed lines are skipped and the rest is valid. The longest matching
// pattern decides, Allow wins a tie, and what no pattern matches is allowed. /robots.txt itself is
// always allowed. The unknown is forbidden: the nil [File] and the zero [Rules] forbid everything
// else.
//
// Patterns and URLs are compared in one canonical form: characters that no URI may contain are
// escaped, %xx of unreserved characters is decoded, other escapes are upper-cased, and reserved
// characters stay, so "/" and "%2F" differ. A literal * or $ in a URL is matched by %2A or %24 in a
// pattern. Beyond the RFC, the parser accepts what Google's parser accepts. The directory
// testdata/vectors/choices lists these choices, with reasons.
//
// # Cost
//
// Parsing is linear in the body. A check allocates nothing if the URL is in canonical form, and
// takes about 0.1 µs with 30 rules. For each pattern it searches a byte of the URL at most once, so
// its work is at most that of 46,000 patterns times the length of the URL: with a hostile file of
// 500 KiB, milliseconds for a URL of usual length. [Rules.Match] bounds the length. A File takes about one
// byte for each byte of the body, and Rules another 12 to 24 bytes per rule.
//
// # Reading the source
//
// lex.go finds lines, keys and values. file.go sorts them into groups. compile.go turns the groups
// of one crawler into Rules: plain prefixes in prefixes.go, wildcards in rule.go. canonical.go has
// the form in which patterns and URLs are compared.
package robotstxt
