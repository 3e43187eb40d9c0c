package robots

import "strings"

// anyAgent is the key of the groups for crawlers that no group names. No token equals it.
const anyAgent = "*"

// fileTokens returns the tokens under which a User-agent value is found, in lower case: what
// the RFC takes for its token, and the token as agents with digits or points write it, of which
// the first is the beginning. Where they differ the first has none of these characters and the
// second has some, so they never meet.
func fileTokens(name string) (token, full string) {
	words, ok := strings.CutPrefix(name, anyAgent)
	if ok && (words == "" || isBlank(words[0])) {
		return anyAgent, anyAgent // "* (all others)" is meant as *
	}
	full = strings.ToLower(leading(name, isTokenByte))
	return leading(full, isRFCTokenByte), full
}

// productToken returns the token of a crawler's own name, in lower case.
func productToken(agent string) string {
	token := leading(strings.TrimSpace(agent), isTokenByte)
	if strings.EqualFold(token, "mozilla") {
		// Crawlers that pose as browsers say who they are after this word.
		_, after, _ := strings.Cut(agent, "compatible;")
		if own := leading(strings.TrimSpace(after), isTokenByte); own != "" {
			token = own
		}
	}
	return strings.ToLower(token)
}

// leading returns the longest prefix of s whose bytes are all in the set.
func leading(s string, in func(byte) bool) string {
	for i := range len(s) {
		if !in(s[i]) {
			return s[:i]
		}
	}
	return s
}

// isRFCTokenByte is the product-token of RFC 9309, 2.2.1.
func isRFCTokenByte(c byte) bool {
	return isAlpha(c) || c == '_' || c == '-'
}

// isTokenByte adds what the tokens of real crawlers hold, such as MJ12bot and Mail.RU_Bot.
func isTokenByte(c byte) bool {
	return isRFCTokenByte(c) || isDigit(c) || c == '.'
}
