package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// longKey is the length in bytes up to which a URL stands in its key as it is. Nearly all URLs are
// far shorter. It is on disk: do not change it.
const longKey = 480

// maxScheme is the greatest length of a scheme that stands in a key. It is no part of a SURT, so
// that one made up by a stranger would make a key of any length; no scheme in use has more.
const maxScheme = 64

// urlKey returns the key under which the versions of a URL are found: its SURT, the labels of the
// host in reverse order and then the rest, so that what lies together in the web lies together in
// the index; then a NUL, and the scheme. The SURT is the one that package dedupe has: no "www." is
// dropped and no letter of a path is lowered. What no server sees or what changes nothing is left
// out: fragment, user name, a default port, upper case in scheme and host. What is not ASCII in the
// tail is escaped, as browsers do before they ask: other programs keep it as it was written.
//
// The tail of a long URL is replaced by its SHA-256. Then the URL cannot be had back from the key,
// and is returned as it is without what was left out.
func urlKey(url string) (key, long string) {
	url, _, _ = strings.Cut(url, "#")
	scheme, rest, found := strings.Cut(url, "://")
	if !found || !isScheme(scheme) || len(scheme) > maxScheme {
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
	host, port := cutPort(strings.ToLower(authority))
	if port == ":" || scheme == "http" && port == ":80" || scheme == "https" && port == ":443" {
		port = ""
	}
	var buf [longKey]byte // nearly all keys fit, and only the string is allocated then
	b := buf[:0]
	b = appendHost(b, host, ".", ",")
	b = append(b, port...)
	b = append(b, ')')
	for i := range len(tail) {
		if c := tail[i]; c < utf8.RuneSelf {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	if len(b) > longKey {
		surt := string(b)
		long = keyURL(surt + "\x00" + scheme)
		b = append(b[:0], shorten(surt)...)
	}
	b = append(b, 0)
	return string(append(b, scheme...)), long
}

// rawKey is urlKey for what has no SURT.
func rawKey(url string) (key, long string) {
	if key = shorten(url); len(url) > longKey {
		long = url
	}
	return key, long
}

// isAuthority refuses what SURTs are cut by, brackets that hold no address, and bytes that are no
// UTF-8, which would all be the same in lower case.
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

// shorten keeps the beginning, so that a long URL still lies with those of its directory, and
// within a block of the index. Two URLs that share a key would be taken for one, hence a hash that
// nobody can find a second text for: what is in it is chosen by strangers.
func shorten(key string) string {
	if len(key) <= longKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:longKey-2*sha256.Size-1] + "\x01" + hex.EncodeToString(sum[:])
}

// isShortened tells whether the tail of a SURT was replaced by its hash.
func isShortened(surt string) bool {
	return len(surt) == longKey && surt[longKey-2*sha256.Size-1] == '\x01'
}

// keyURL is the inverse of urlKey, for a key that was not shortened.
func keyURL(key string) string {
	surt, scheme, found := strings.Cut(key, "\x00")
	if !found {
		return key
	}
	authority, tail, _ := strings.Cut(surt, ")")
	host, port := cutPort(authority)
	b := make([]byte, 0, len(key)+len("://"))
	b = append(append(b, scheme...), "://"...)
	b = appendHost(b, host, ",", ".")
	b = append(b, port...)
	return string(append(b, tail...))
}

// cutPort cuts before the colon of the port, which is none of those in an IPv6 address. What has
// several colons otherwise is no authority, and is left alone.
func cutPort(authority string) (host, port string) {
	name := authority[strings.LastIndexByte(authority, ']')+1:]
	colon := strings.IndexByte(name, ':')
	if colon < 0 || strings.IndexByte(name[colon+1:], ':') >= 0 {
		return authority, ""
	}
	return authority[:len(authority)-len(name)+colon], name[colon:]
}

// reverseHost returns the labels of a host from the last to the first.
func reverseHost(host string) string {
	return string(appendHost(nil, strings.ToLower(host), ".", ","))
}

// appendHost appends the labels of a host from the last to the first, with another separator. Root
// dots are no labels, and an address stays as it is.
func appendHost(dst []byte, host, separator, with string) []byte {
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

// isAddress tells whether a host in lower case is an IP address: no name ends in a digit alone.
func isAddress(host string) bool {
	return strings.HasPrefix(host, "[") ||
		strings.Trim(host, "0123456789.") == "" && strings.Count(host, ".") == 3
}

// span is a range of keys: those from low on and below high.
type span struct{ low, high string }

// everything is the range of all keys.
var everything = []span{{"", "\xff"}}

// siteSpans covers a host and the hosts below it, on all ports.
func siteSpans(host string) []span {
	surt := reverseHost(host)
	return []span{after(surt + ")"), after(surt + ","), after(surt + ":")}
}

// hostSpans covers a host on all ports.
func hostSpans(host string) []span {
	surt := reverseHost(host)
	return []span{after(surt + ")"), after(surt + ":")}
}

// prefixSpans covers the URLs that begin like this one, with any scheme. Where the tails of long
// URLs are hashed, a prefix beyond the hash finds none of them.
func prefixSpans(url string) []span {
	key, _ := urlKey(url)
	surt, _, _ := strings.Cut(key, "\x00")
	return []span{after(surt)}
}

// after is the range of the keys that begin with prefix.
func after(prefix string) span {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return everything[0]
	}
	end[len(end)-1]++
	return span{prefix, string(end)}
}
