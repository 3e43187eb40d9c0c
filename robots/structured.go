package robots

import (
	"iter"
	"strings"
)

// scanner reads structured fields (RFC 9651, 4.2). It checks all of their grammar, because a field
// with a fault anywhere must be ignored as a whole, but decodes no value: all that one looks for
// here is recognised as it is written.
type scanner struct {
	rest   string
	failed bool
}

// dictionary yields the keys and values. After a fault it ends early and failed is set.
func (s *scanner) dictionary() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for more := s.begin(); more && !s.failed; more = s.next() {
			key, value := s.key(), implied
			if s.accept('=') {
				value = s.itemOrList()
			}
			s.parameters(nil)
			if s.failed || !yield(key, value) {
				return
			}
		}
	}
}

// list yields the members of a list with their parameters. After a fault it ends early and failed
// is set.
func (s *scanner) list() iter.Seq2[string, map[string]string] {
	return func(yield func(value string, parameters map[string]string) bool) {
		for more := s.begin(); more && !s.failed; more = s.next() {
			value := s.itemOrList()
			parameters := make(map[string]string)
			s.parameters(parameters)
			if s.failed || !yield(value, parameters) {
				return
			}
		}
	}
}

// implied is the value of what has none: the boolean true.
const implied = "?1"

// begin skips the blanks around the field and reports whether there is anything in it.
func (s *scanner) begin() bool {
	s.rest = strings.Trim(s.rest, " ")
	return s.rest != ""
}

// next steps over the comma to the next member. Behind a last comma there is none, which whoever
// reads the member finds out.
func (s *scanner) next() bool {
	s.rest = strings.TrimLeft(s.rest, blanks)
	if s.rest == "" || s.failed {
		return false
	}
	s.expect(',')
	s.rest = strings.TrimLeft(s.rest, blanks)
	return true
}

// peek returns the next octet without taking it, and NUL, which no grammar has, at the end.
func (s *scanner) peek() byte {
	if s.rest == "" {
		return 0
	}
	return s.rest[0]
}

// accept takes the next octet if it is c.
func (s *scanner) accept(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// expect takes the next octet, which has to be c.
func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.failed = true
	}
}

// take returns the bytes of a set at the front. There must be at least one.
func (s *scanner) take(in func(byte) bool) string {
	taken := leading(s.rest, in)
	s.rest = s.rest[len(taken):]
	s.failed = s.failed || taken == ""
	return taken
}

// key takes a key (4.2.3.3). Upper case is a fault there, unlike in robots.txt.
func (s *scanner) key() string {
	if c := s.peek(); !isLower(c) && c != '*' {
		s.failed = true
		return ""
	}
	return s.take(func(c byte) bool {
		return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0
	})
}

// itemOrList returns one value as written. Of a list, which nothing here looks for, it is empty.
func (s *scanner) itemOrList() string {
	if !s.accept('(') {
		return s.bareItem()
	}
	for !s.failed {
		s.rest = strings.TrimLeft(s.rest, " ")
		if s.accept(')') {
			return ""
		}
		s.bareItem()
		s.parameters(nil)
		if c := s.peek(); c != ' ' && c != ')' {
			s.failed = true
		}
	}
	return ""
}

// parameters skips what follows a value, and notes it if into is not nil.
func (s *scanner) parameters(into map[string]string) {
	for !s.failed && s.accept(';') {
		s.rest = strings.TrimLeft(s.rest, " ")
		key, value := s.key(), implied
		if s.accept('=') {
			value = s.bareItem()
		}
		if into != nil && !s.failed {
			into[key] = value
		}
	}
}

// bareItem returns a value as written, without its parameters.
func (s *scanner) bareItem() string {
	before := s.rest
	switch c := s.peek(); {
	case isAlpha(c) || c == '*':
		s.take(isTokenChar)
	case c == '-' || isDigit(c):
		s.number()
	case s.accept('?'):
		if !s.accept('0') {
			s.expect('1')
		}
	case s.accept('"'):
		s.quoted()
	case s.accept(':'):
		s.rest = strings.TrimLeft(s.rest, base64Digits)
		s.expect(':')
	case s.accept('@'):
		s.integer()
	case s.accept('%'):
		s.display()
	default:
		s.failed = true
	}
	return before[:len(before)-len(s.rest)]
}

// integer takes up to 15 digits (4.2.4): the RFC promises that they fit into a double.
func (s *scanner) integer() {
	s.accept('-')
	if digits := s.take(isDigit); len(digits) > 15 {
		s.failed = true
	}
}

// number takes an integer, or a decimal of up to 12 and 3 digits (4.2.4).
func (s *scanner) number() {
	s.accept('-')
	whole := s.take(isDigit)
	if !s.accept('.') {
		s.failed = s.failed || len(whole) > 15
		return
	}
	part := s.take(isDigit)
	s.failed = s.failed || len(whole) > 12 || len(part) > 3
}

// quoted takes the rest of a string (4.2.5), in which a backslash protects itself and quotes only.
func (s *scanner) quoted() {
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"':
			return
		case c == '\\' && !s.accept('"'):
			s.expect('\\')
		case c < ' ' || c > '~':
			s.failed = true
		}
	}
	s.failed = true
}

// base64Digits are those that may stand between the colons of a byte sequence (4.2.7).
const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

// display takes the rest of a display string (4.2.10). Its escapes must be in lower case, but
// whether they make up UTF-8 is not looked at: nothing is read from there.
func (s *scanner) display() {
	s.expect('"')
	for s.rest != "" && !s.failed {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"':
			return
		case c == '%':
			s.failed = len(s.rest) < 2 || !isLowerHex(s.rest[0]) || !isLowerHex(s.rest[1])
		case c < ' ' || c > '~':
			s.failed = true
		}
	}
	s.failed = true
}

func isLowerHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }

func isAlpha(c byte) bool { return isLower(c | 0x20) }

// isTokenChar has what may follow the first octet of a token (3.3.4).
func isTokenChar(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}
