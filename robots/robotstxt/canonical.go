package robotstxt

import (
	"strings"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

// target returns the part of a URL that patterns are matched against: at most so many bytes of path and
// query, in canonical form, which is not cut again: a cut would hide from the rules what the server reads.
func target(url string, most int) string {
	if i := strings.IndexByte(url, '#'); i >= 0 {
		url = url[:i]
	}
	if url == "" || url[0] != '/' || strings.HasPrefix(url, "//") {
		url = afterHost(url)
	}
	return canonical(url[:min(len(url), most)], false)
}

// maxPath is how much is matched of a URL in any case, and maxSteps bounds the cost of a check: so many
// bytes times rules with wildcards take a quarter of a second.
const maxPath, maxSteps = 8 << 10, 1 << 28

// afterHost returns path and query of a URL that does not start with its path. Like Google's
// parser, it ends the host at the first slash, question mark or semicolon. So neither a missing
// scheme nor a "://" inside the query can hide the path from the rules. A user is no part of the
// host, and may have semicolons.
func afterHost(url string) string {
	url = strings.TrimPrefix(url, "//")
	if i := strings.IndexByte(url, '/'); i > 0 && strings.HasPrefix(url[i-1:], "://") &&
		strings.IndexByte(url[:i], '?') < 0 && strings.IndexByte(url[:i], ';') < 0 {
		url = url[i+len("//"):]
	}
	end, semicolon := 0, -1 // semicolon is the first one behind the user
	for ; end < len(url) && url[end] != '/' && url[end] != '?'; end++ {
		switch {
		case url[end] == '@':
			semicolon = -1
		case url[end] == ';' && semicolon < 0:
			semicolon = end
		}
	}
	if semicolon >= 0 {
		end = semicolon
	}
	if end < len(url) && url[end] == '/' {
		return url[end:]
	}
	return "/" + url[end:]
}

// The classes of bytes in canonical form.
const (
	plainClass   = iota // unchanged
	percentClass        // may start an escape
	starClass           // wildcard in patterns, escaped in URLs
	escapeClass         // always escaped
)

// classes follows RFC 3986: characters that it does not allow anywhere in a URI are escaped. It
// allows the dollar sign, which would be mistaken for the end marker of patterns.
var classes = func() (c [256]uint8) {
	for i := range c {
		if i <= ' ' || i >= 0x7F || strings.IndexByte("\"<>\\^`{|}$", byte(i)) >= 0 {
			c[i] = escapeClass
		}
	}
	c['%'], c['*'] = percentClass, starClass
	return c
}()

// canonical returns s in the form that is compared octet by octet (RFC 9309, 2.2.2 and 2.2.3). It
// returns s itself if that is canonical, as URLs usually are. The caller must have removed the end
// marker of a pattern.
func canonical(s string, isPattern bool) string {
	i := settled(s, isPattern)
	if i == len(s) {
		return s
	}
	// The rest costs an allocation, but well-formed URLs do not get here.
	out := make([]byte, i, len(s)+16)
	copy(out, s)
	for i < len(s) {
		c := s[i]
		if octet, ok := unescape(s[i:]); ok {
			if rep.IsUnreserved(octet) && !completesEscape(out, octet) {
				out = append(out, octet)
			} else {
				out = appendEscape(out, octet)
			}
			i += len("%xx")
			continue
		}
		if classes[c] == escapeClass || classes[c] == starClass && !isPattern {
			out = appendEscape(out, c)
		} else {
			out = append(out, c)
		}
		i++
	}
	return string(out)
}

// settled returns the length of the canonical prefix of s. It is separate from canonical because
// most checks need nothing else, and it must be cheap.
func settled(s string, isPattern bool) int {
	for i := range len(s) {
		switch classes[s[i]] {
		case percentClass:
			octet, ok := unescape(s[i:])
			if !ok {
				continue
			}
			if rep.IsUnreserved(octet) || isSpecial(octet) || isLower(s[i+1]) || isLower(s[i+2]) {
				return i
			}
		case starClass:
			if !isPattern {
				return i
			}
		case escapeClass:
			return i
		}
	}
	return len(s)
}

// unescape decodes the %xx at the start of s, if there is one. A lone % stays, as it does when a
// browser requests such a URL.
func unescape(s string) (octet byte, ok bool) {
	if len(s) < len("%xx") || s[0] != '%' {
		return 0, false
	}
	high, ok1 := hexDigit(s[1])
	low, ok2 := hexDigit(s[2])
	return high<<4 | low, ok1 && ok2
}

// completesEscape reports whether a decoded octet would turn a lone % into an escape: %2%46 is
// not %2F.
func completesEscape(out []byte, octet byte) bool {
	n := len(out)
	return isHex(octet) && (n > 0 && out[n-1] == '%' ||
		n > 1 && out[n-2] == '%' && isHex(out[n-1]))
}

// A literal dollar sign or star, escaped or not, becomes three bytes that occur nowhere else. They
// are as long as the escape, whose octets count, and match only themselves. As %24 and %2A they
// would match patterns such as "/a%" and "/*4$", although the URL may have "$".
const (
	literalDollar = "\x01\x02\x03"
	literalStar   = "\x04\x05\x06"
)

func isSpecial(c byte) bool { return c == '$' || c == '*' }

// appendEscape writes upper case, the normal form of RFC 3986 (2.1).
func appendEscape(out []byte, octet byte) []byte {
	const digits = "0123456789ABCDEF"
	switch octet {
	case '$':
		return append(out, literalDollar...)
	case '*':
		return append(out, literalStar...)
	}
	return append(out, '%', digits[octet>>4], digits[octet&15])
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case rep.IsDigit(c):
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func isHex(c byte) bool {
	_, ok := hexDigit(c)
	return ok
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
