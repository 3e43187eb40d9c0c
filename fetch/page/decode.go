package page

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// decoded returns the value of an attribute in UTF-8, with character references resolved, line ends
// unified and NULs replaced. It returns the value itself if nothing changes.
func (s *scanner) decoded(value []byte) []byte {
	if s.buf == nil {
		// Enough for most values; growing from nothing would take several steps.
		s.buf = make([]byte, 0, 512)
	}
	if c, needed := s.decoder.needed(value); needed {
		start := len(s.buf)
		s.buf = c.Decode(s.buf, value)
		value = s.buf[start:]
	}
	i := plainLen(value)
	if i == len(value) {
		return value
	}
	start := len(s.buf)
	for {
		s.buf = append(s.buf, value[:i]...)
		if value = value[i:]; len(value) == 0 {
			return s.buf[start:]
		}
		n := 1
		switch value[0] {
		case 0:
			s.buf = utf8.AppendRune(s.buf, utf8.RuneError)
		case '\r':
			s.buf = append(s.buf, '\n')
			if len(value) > 1 && value[1] == '\n' {
				n = 2
			}
		case '&':
			s.buf, n = appendReference(s.buf, value)
		}
		value = value[n:]
		i = plainLen(value)
	}
}

// isPlain reports whether a value needs no decoding, in all encodings that are scanned.
func isPlain(value []byte) bool {
	for _, c := range value {
		if marks[c]&isOdd != 0 {
			return false
		}
	}
	return true
}

// plainLen returns the length of the prefix of value that needs no decoding.
func plainLen(value []byte) int {
	for i, c := range value {
		if isCoded(c) {
			return i
		}
	}
	return len(value)
}

func isCoded(c byte) bool { return c == '&' || c == '\r' || c == 0 }

// appendReference appends the meaning of the character reference at the start of b, by the rules
// for attributes, and returns its length. An ampersand that does not start a reference stands for
// itself.
func appendReference(dst, b []byte) ([]byte, int) {
	if bytes.HasPrefix(b, []byte("&amp;")) {
		return append(dst, '&'), len("&amp;")
	}
	n := referenceLen(b)
	if n == 1 {
		return append(dst, '&'), 1
	}
	// Package html knows the names, but applies the rules for text: it resolves the "&not" of
	// "&notit;". Then a part of the name is left over.
	name := string(b[:n])
	text := html.UnescapeString(name)
	if text == name || name[1] != '#' && leftOver(text, name) {
		return append(dst, '&'), 1
	}
	return append(dst, text...), n
}

// leftOver reports whether text is more than the meaning of one name. That is one character, or two
// of which the second is not a semicolon.
func leftOver(text, name string) bool {
	if utf8.RuneCountInString(text) == 1 {
		return false
	}
	return !strings.HasSuffix(name, ";") || strings.HasSuffix(text, ";")
}

// referenceLen returns the length of a possible reference at the start of b, or 1 if there is none.
func referenceLen(b []byte) int {
	n := 1
	if len(b) > 1 && b[1] == '#' {
		if n = 2; len(b) > 2 && b[2]|0x20 == 'x' {
			n = 3
		}
		digits := n
		for n < len(b) && (isDigit(b[n]) || digits == 3 && 'a' <= b[n]|0x20 && b[n]|0x20 <= 'f') {
			n++
		}
		if n == digits {
			return 1
		}
	} else {
		for n < len(b) && (isAlpha(b[n]) || isDigit(b[n])) {
			n++
		}
		// In "?a=1&copy=2" no copyright sign was meant.
		if n == 1 || n < len(b) && b[n] == '=' {
			return 1
		}
	}
	if n < len(b) && b[n] == ';' {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
