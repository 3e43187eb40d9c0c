// Package weburl parses URLs as browsers do, following the WHATWG URL Standard.
//
// [Parse] follows the standard's basic URL parser and [URL.Append] its serializer. Package net/url
// follows RFC 3986, which rejects or keeps much of what pages contain: spaces around a link,
// backslashes, stray percent signs, 0x7f.1 for 127.0.0.1. Parse returns URLs in normal form:
// serializing and parsing them again changes nothing. Package dedupe/weburl is the public API.
//
// # Invariants
//
// Parse accepts any bytes, never panics and takes time linear in its input. A URL that is already
// in normal form is cut into substrings of the input, without an allocation.
//
// # Departures
//
// Bytes that are not UTF-8 are read as U+FFFD, the replacement character. A host name with characters
// beyond ASCII is rejected if it has more than 255 characters, or a label with more than 63 different ones
// beyond ASCII, because punycode takes quadratic time; DNS allows 255 bytes, and 63 in a label. An empty
// label of punycode, xn--, counts as an empty label in such a name. Names are mapped by the tables of the
// Go release, and what those do not know is rejected: Go 1.26 has those of Unicode 15, which lack some
// capital letters and reject some invisible characters.
//
// # What it does not do
//
// There are no setters, no blob URLs and no form encoding.
package weburl
