// Package urlkey makes the keys by which an archive sorts and finds URLs, and ranges of keys.
package urlkey

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// MaxLen is the length in bytes up to which a key contains the whole URL. Nearly all URLs are far
// shorter. The number is part of the format on disk: do not change it.
const MaxLen = 480

// maxScheme bounds the scheme in a key, to which MaxLen does not apply. No scheme in use is longer.
const maxScheme = 64

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	upperHex     = "0123456789ABCDEF"
)

// IsScheme reports whether s is a valid scheme (RFC 3986, section 3.1).
func IsScheme(s string) bool {
	return s != "" && !strings.Contains("0123456789+-.", s[:1]) &&
		strings.Trim(s, alphanumeric+"+-.") == ""
}

// Of returns the key of a URL: its SURT, a NUL and the scheme. The SURT begins with the labels of
// the host in reverse order, so that the pages of a site are adjacent in the index. It is that of
// package dedupe/weburl, which keeps "www." and the case of the path. The key has no fragment, user
// name or default port, and scheme and host are in lower case. Non-ASCII characters are escaped, as
// in browsers, because other programs store them unescaped.
//
// If the SURT is longer than MaxLen, a hash replaces its end. The URL cannot be restored from such
// a key, so Of returns it as long.
func Of(url string) (key, long string) {
	url, _, _ = strings.Cut(url, "#")
	scheme, rest, found := strings.Cut(url, "://")
	if !found || !IsScheme(scheme) || len(scheme) > maxScheme {
		return rawKey(url)
	}
	scheme = strings.ToLower(scheme)
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if !strings.HasPrefix(tail, "/") {
		tail = "/" + tail
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if !isAuthority(authority) {
		return rawKey(url)
	}
	host, port := CutPort(strings.ToLower(authority))
	if port == ":" || scheme == "http" && port == ":80" || scheme == "https" && port == ":443" {
		port = ""
	}
	var buf [MaxLen]byte // nearly all keys fit; then only the string is allocated
	b := buf[:0]
	b = AppendHost(b, host, ".", ",")
	b = append(b, port...)
	b = append(b, ')')
	for i := range len(tail) {
		if c := tail[i]; c < utf8.RuneSelf {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	if len(b) > MaxLen {
		surt := string(b)
		long = URL(surt + "\x00" + scheme)
		b = append(b[:0], shorten(surt)...)
	}
	b = append(b, 0)
	return string(append(b, scheme...)), long
}

// rawKey is Of for a URL that has no SURT.
func rawKey(url string) (key, long string) {
	if key = shorten(url); len(url) > MaxLen {
		long = url
	}
	return key, long
}

// isAuthority rejects the separators of a SURT, brackets without an address, and invalid UTF-8,
// because ToLower maps all invalid bytes to one character.
func isAuthority(s string) bool {
	if rest, found := strings.CutPrefix(s, "["); found {
		address, port, closed := strings.Cut(rest, "]")
		if !closed || port != "" && port[0] != ':' {
			return false
		}
		s = address + port
	}
	return !strings.ContainsAny(s, "),[]") && utf8.ValidString(s)
}

// shorten keeps the beginning, so that a long URL sorts with those of its directory, and its key
// fits into a block of the index. URLs with the same key would be treated as one, and websites
// choose their URLs, so the hash is collision resistant.
func shorten(key string) string {
	if len(key) <= MaxLen {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:MaxLen-2*sha256.Size-1] + "\x01" + hex.EncodeToString(sum[:])
}

// URL is the inverse of Of for a key that was not shortened.
func URL(key string) string {
	surt, scheme, found := strings.Cut(key, "\x00")
	if !found {
		return key
	}
	authority, tail, _ := strings.Cut(surt, ")")
	host, port := CutPort(authority)
	b := make([]byte, 0, len(key)+len("://"))
	b = append(append(b, scheme...), "://"...)
	b = AppendHost(b, host, ",", ".")
	b = append(b, port...)
	return string(append(b, tail...))
}

// CutPort cuts before the colon of the port, ignoring those of an IPv6 address in brackets. Any
// other string with several colons is not an authority, and is not cut.
func CutPort(authority string) (host, port string) {
	name := authority[strings.LastIndexByte(authority, ']')+1:]
	colon := strings.IndexByte(name, ':')
	if colon < 0 || strings.IndexByte(name[colon+1:], ':') >= 0 {
		return authority, ""
	}
	return authority[:len(authority)-len(name)+colon], name[colon:]
}

// reverseHost returns the labels of a host from the last to the first. An IPv6 address may lack its brackets.
func reverseHost(host string) string {
	if strings.Count(host, ":") > 1 && host[0] != '[' {
		host = "[" + host + "]"
	}
	return string(AppendHost(nil, strings.ToLower(host), ".", ","))
}

// AppendHost appends the labels of a host from the last to the first, with another separator. It
// omits root dots, and appends an IP address unchanged.
func AppendHost(dst []byte, host, separator, with string) []byte {
	host = strings.TrimRight(host, ".")
	if isAddress(host) {
		return append(dst, host...)
	}
	for {
		at := strings.LastIndex(host, separator)
		dst = append(dst, host[at+1:]...)
		if at < 0 {
			return dst
		}
		dst = append(dst, with...)
		host = host[:at]
	}
}

// isAddress reports whether a host in lower case is an IP address. No top-level domain is a number.
func isAddress(host string) bool {
	return strings.HasPrefix(host, "[") ||
		strings.Trim(host, "0123456789.") == "" && strings.Count(host, ".") == 3
}

// Span is a range of keys, from Low up to but not including High.
type Span struct{ Low, High string }

// All is the range of all keys.
var All = Span{"", "\xff"}

// Site covers a host and its subdomains, on all ports.
func Site(host string) []Span {
	surt := reverseHost(host)
	return []Span{Under(surt + ")"), Under(surt + ","), Under(surt + ":")}
}

// Host covers a host on all ports.
func Host(host string) []Span {
	surt := reverseHost(host)
	return []Span{Under(surt + ")"), Under(surt + ":")}
}

// Prefix covers the URLs that begin with this one, with any scheme. A prefix that extends into the
// hashed end of a long URL does not find it.
func Prefix(url string) []Span {
	key, _ := Of(url)
	surt, _, _ := strings.Cut(key, "\x00")
	return []Span{Under(surt)}
}

// Under is the range of the keys that begin with prefix.
func Under(prefix string) Span {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return All
	}
	end[len(end)-1]++
	return Span{prefix, string(end)}
}
