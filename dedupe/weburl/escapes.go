package weburl

import "strings"

// normalizeEscapes returns s with its percent-encodings in normal form. If they already are, it
// returns s itself.
func normalizeEscapes(s string) string {
	at := strings.IndexByte(s, '%')
	for at >= 0 && isNormalEscape(s[at:]) {
		next := strings.IndexByte(s[at+1:], '%')
		if next < 0 {
			return s
		}
		at += 1 + next
	}
	if at < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)), s[:at]...)
	for i := at; i < len(s); i++ {
		if !isEscape(s[i:]) {
			out = append(out, s[i])
			continue
		}
		high, low := upper(s[i+1]), upper(s[i+2])
		i += len("%41") - 1
		if c := unhex(high)<<4 | unhex(low); isUnreserved(c) && !extendsEscape(out, c) {
			out = append(out, c)
		} else {
			out = append(out, '%', high, low)
		}
	}
	return string(out)
}

// extendsEscape reports whether c would complete an escape together with a stray percent sign at
// the end of out. In "%%37E" the first percent sign is literal; decoding %37 would turn the literal
// "%7E" into an escape, and so change the URL. An escape in out ends in two hexadecimal digits, so
// a percent sign any closer to the end is a stray one.
func extendsEscape(out []byte, c byte) bool {
	n := len(out)
	return isHex(c) && (n > 0 && out[n-1] == '%' || n > 1 && out[n-2] == '%' && isHex(out[n-1]))
}

// isEscape reports whether s starts with a percent sign and two hexadecimal digits.
func isEscape(s string) bool {
	return len(s) >= len("%41") && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

// isNormalEscape reports whether s starts with an escape in normal form.
func isNormalEscape(s string) bool {
	return isEscape(s) && upper(s[1]) == s[1] && upper(s[2]) == s[2] &&
		!isUnreserved(unhex(s[1])<<4|unhex(s[2]))
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// isUnreserved reports whether c means the same with and without percent-encoding, by RFC 3986,
// section 2.3.
func isUnreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
