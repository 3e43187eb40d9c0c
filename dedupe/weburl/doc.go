// Package weburl parses, resolves and canonicalizes URLs as browsers do.
//
//	url, err := weburl.Canonical(" HTTP://WWW.Example.com:80/a/../b c#top")
//	// http://www.example.com/b%20c
//	link, err := weburl.Resolve(url, "../news?id=1")
//	// http://www.example.com/news?id=1
//	site := weburl.Site(link) // example.com
//	key := weburl.SURT(link)  // com,example,www)/news?id=1
//
// It follows the WHATWG URL Standard. Package net/url follows RFC 3986, which rejects or keeps much
// of what pages contain: spaces around a link, backslashes, stray percent signs, 0x7f.1 for
// 127.0.0.1. A crawler that parses links like a browser finds the same pages, and cannot be
// deceived about the host.
//
// # Promises
//
// Canonical(Canonical(x)) == Canonical(x). The result is ASCII, http or https, and at most
// [MaxLength] bytes long. The same is true for every choice of [Steps]. No input causes a panic,
// and the time is linear in its length. A URL that is already canonical is returned as it is, and
// without an allocation unless there are Steps.
//
// # What it does not do
//
// A canonical form is not an identity. %7E and ~, /a?b=1&c=2 and /a?c=2&b=1, http and https may be
// one page or two; only the server knows. [Steps] merges some of them, for crawls that can afford
// the rare mistake.
//
// There are no setters, no blob URLs and no form encoding. Queries are encoded as UTF-8 whatever
// the encoding of the page. Host names with characters beyond ASCII are limited to 255 characters, and
// each of their labels to 63 different ones beyond ASCII, because punycode takes quadratic time: no name
// that can be resolved has more. In such names an empty label of punycode, xn--, counts as an empty label,
// while browsers reject the name.
package weburl
