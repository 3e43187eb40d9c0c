package weburl

import "strings"

var dropTabsAndNewlines = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// trim drops control characters and spaces around a URL, and tabs and line breaks in it: links in
// pages are often written carelessly, and long ones are wrapped.
func trim(raw string) string {
	in := strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' }) // controls and the space
	if strings.ContainsAny(in, "\t\n\r") {
		return dropTabsAndNewlines.Replace(in)
	}
	return in
}

// cutScheme cuts off a scheme and its colon, and lowercases the scheme. A colon after anything else
// belongs to a relative path, as in "./a:b".
func cutScheme(in string) (scheme, rest string, found bool) {
	for i := range len(in) {
		switch c := in[i]; {
		case c == ':' && i > 0:
			return strings.ToLower(in[:i]), in[i+1:], true
		case isAlpha(c):
		case i > 0 && (isDigit(c) || c == '+' || c == '-' || c == '.'):
		default:
			return "", in, false
		}
	}
	return "", in, false
}

// cutPort cuts at the first colon that is not inside the brackets of an IPv6 address. Brackets
// elsewhere count as well; the host parser rejects them.
func cutPort(authority string) (host, port string, found bool) {
	bracket := false
	for i := range len(authority) {
		switch authority[i] {
		case '[':
			bracket = true
		case ']':
			bracket = false
		case ':':
			if !bracket {
				return authority[:i], authority[i+1:], true
			}
		}
	}
	return authority, "", false
}

// parsePort returns port without leading zeros, or "" for the scheme's default port. A port may
// have any number of leading zeros.
func parsePort(port, scheme string) (string, error) {
	number := 0
	for i := range len(port) {
		if !isDigit(port[i]) {
			return "", ParseError{ErrPort, "not a number"}
		}
		if number = number*10 + int(port[i]-'0'); number > 65535 {
			return "", ParseError{ErrPort, "above 65535"}
		}
	}
	for len(port) > 1 && port[0] == '0' {
		port = port[1:]
	}
	if port == defaultPort(scheme) {
		return "", nil
	}
	return port, nil
}

// slashAt reports whether in has a separator at i: a slash, or a backslash in a special URL.
func (p *parser) slashAt(in string, i int) bool {
	return i < len(in) && (in[i] == '/' || in[i] == '\\' && p.special)
}

// skipSlashes implements the special authority ignore slashes state.
func (p *parser) skipSlashes(in string) string {
	for p.slashAt(in, 0) {
		in = in[1:]
	}
	return in
}

// cutAtSlash cuts in before its first separator.
func (p *parser) cutAtSlash(in string) (before, after string) {
	stop := isSlash
	if p.special {
		stop |= isBackslash
	}
	// One loop for both: a separate search for each would take quadratic time if one is missing.
	i := until(in, stop)
	return in[:i], in[i:]
}

// isAlpha folds the case by setting the bit in which ASCII's cases differ.
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
