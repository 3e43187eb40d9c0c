// Package weburl parses URLs as browsers do, by the WHATWG URL Standard.
//
// [Parse] follows the standard's basic URL parser and [URL.Append] its serializer; net/url
// follows RFC 3986, which refuses or keeps much of what pages really contain: spaces around a
// link, backslashes, stray percent signs, 0x7f.1 for 127.0.0.1. What Parse returns is in normal
// form: writing it and parsing it again changes nothing.
//
// # Invariants
//
// Parse takes any bytes, never panics and needs time linear in its input. A URL that is in
// normal form already is cut into substrings of the input, without an allocation.
//
// # Departures
//
// Bytes that are no UTF-8 are read as U+FFFD, the replacement character. A host name with
// non-ASCII characters is refused beyond 1 KiB, because punycode takes quadratic time; the
// domain name system takes 255 bytes at most. Names are mapped as Unicode 17 wants it, but those of
// its characters that are newer than the Go release's tables are refused: Go 1.26 knows Unicode 15.
//
// # What it does not do
//
// There are no setters, no blob URLs and no form encoding.
package weburl
