// Package rep holds what the packages of the Robots Exclusion Protocol share: how a crawler and a
// site name each other.
package rep

import "strings"

// AnyAgent names the crawlers that nothing else names. No token equals it.
const AnyAgent = "*"

// OwnToken returns the product token in a crawler's own name, in lower case, or "" if there is
// none. The name is a token, such as examplebot, or a whole User-Agent header. In a header that
// poses as a browser the token is the product after "compatible;".
//
// Other text has no token: RFC 9309 (2.2.1) has a crawler without one obey the groups for *.
func OwnToken(agent string) string {
	agent = strings.TrimSpace(agent)
	token := Leading(agent, isTokenByte)
	if strings.EqualFold(token, "mozilla") {
		_, after, _ := strings.Cut(agent, "compatible;")
		after = strings.TrimSpace(after)
		if own := Leading(after, isTokenByte); own != "" {
			return strings.ToLower(own)
		}
	}
	rest := strings.TrimSpace(agent[len(token):])
	if rest != "" && rest[0] != '/' && rest[0] != '(' {
		return "" // neither a token nor "product/version (comment)"
	}
	return strings.ToLower(token)
}

// NameOf returns the token that a site writes for a crawler: its longest beginning that looks like
// a token, or [AnyAgent]. Text behind it is ignored, as in "examplebot/1.0" or "* # others".
func NameOf(text string) string {
	words, ok := strings.CutPrefix(text, AnyAgent)
	if ok && (words == "" || IsBlank(words[0])) {
		return AnyAgent
	}
	return Leading(text, isTokenByte)
}

// Names reports whether a result of NameOf names the crawler with that token, which is not empty.
//
// RFC 9309 allows letters, hyphens and underscores in a token. Crawlers such as MJ12bot have other
// characters too. A site's "MJ12bot" names both the crawler MJ12bot and, cut where the RFC ends
// it, the crawler MJ.
func Names(name, own string) bool {
	return strings.EqualFold(name, own) || strings.EqualFold(Leading(name, isRFCTokenByte), own)
}

// Leading returns the longest prefix of s whose bytes are all in the set.
func Leading(s string, in func(byte) bool) string {
	for i := range len(s) {
		if !in(s[i]) {
			return s[:i]
		}
	}
	return s
}

// IsBlank reports whether c is white space within a line. Only ASCII counts, as in Google's
// parser: bytes of UTF-8 must not be taken for blanks of another encoding.
func IsBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\f' && c != '\n' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsUnreserved is RFC 3986, 2.3: escaped or not, these bytes of a URL mean the same.
func IsUnreserved(c byte) bool { return isTokenByte(c) || c == '~' }

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isRFCTokenByte is the product-token of RFC 9309, 2.2.1.
func isRFCTokenByte(c byte) bool { return isAlpha(c) || c == '_' || c == '-' }

// isTokenByte adds what the tokens of real crawlers hold, such as MJ12bot and Mail.RU_Bot.
func isTokenByte(c byte) bool { return isRFCTokenByte(c) || IsDigit(c) || c == '.' }
