package sitemap

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	textToken tokenKind = iota
	cdataToken
	startToken
	endToken
)

// token is a piece of a document. Its bytes are valid until the next one is read.
type token struct {
	kind  tokenKind
	text  []byte // of a text
	name  []byte // of a tag, without its prefix
	space []byte // its prefix
	attrs []byte // of a start tag, as written
	empty bool   // a start tag that also ends its element
}

// next returns the next token, skipping comments and declarations. Text that cannot be markup is
// text, as in browsers: an XML parser would give up.
func (s *source) next() (token, error) {
	for {
		if len(s.rest()) < len("<![CDATA[") && s.more() {
			continue
		}
		rest := s.rest()
		switch {
		case len(rest) == 0:
			return token{}, s.err
		case rest[0] != '<':
			return s.textToken()
		case bytes.HasPrefix(rest, []byte("<![CDATA[")):
			return s.cdata()
		case bytes.HasPrefix(rest, []byte("<!--")):
			if !s.skip(len("<!--"), "-->") {
				return token{}, s.cut()
			}
		case len(rest) > 1 && (rest[1] == '!' || rest[1] == '?'):
			if !s.declaration() {
				return token{}, s.cut()
			}
		case beginsTag(rest):
			end := s.tagEnd()
			if end < 0 {
				return token{}, s.cut()
			}
			if s.rest()[end] == '>' {
				return s.tag(end), nil
			}
			fallthrough // the tag has no end: it is text up to the next bracket
		default:
			s.pos++
			return token{text: s.buf[s.pos-1 : s.pos]}, nil // an unescaped bracket; the rest may have moved
		}
	}
}

// cut returns the error of a document that ends within markup.
func (s *source) cut() error {
	if s.err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return s.err
}

// beginsTag reports whether b may begin a tag.
func beginsTag(b []byte) bool {
	b = bytes.TrimPrefix(b[1:], []byte("/"))
	return len(b) > 0 && isNameStart(b[0])
}

// isNameStart reports whether c may begin the name of an element.
func isNameStart(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf
}

// textToken returns the text up to the next angle bracket, or all of it.
func (s *source) textToken() (token, error) {
	n := s.until(0, "<") - 1
	if n < 0 {
		if s.err != io.EOF {
			return token{}, s.err
		}
		n = len(s.rest())
	}
	text := s.rest()[:n]
	s.pos += n
	return token{text: text}, nil
}

func (s *source) cdata() (token, error) {
	n := s.until(len("<![CDATA["), "]]>")
	if n < 0 {
		return token{}, s.cut()
	}
	text := s.rest()[len("<![CDATA[") : n-len("]]>")]
	s.pos += n
	return token{kind: cdataToken, text: text}, nil
}

// skip moves past the first end from the nth byte on, and reports whether there is one.
func (s *source) skip(n int, end string) bool {
	n = s.until(n, end)
	s.pos += max(n, 0)
	return n >= 0
}

// maxInstruction is longer than any useful processing instruction.
const maxInstruction = 4 << 10

// declaration skips text that starts with "<!" or "<?". A document type, which comes first, may
// have declarations of its own in brackets. A processing instruction ends with "?>" and may contain
// brackets, except for the XML declaration. After one without that end, all of them end at their first
// bracket: to search for it again and again would take quadratic time.
func (s *source) declaration() bool {
	end := s.until(0, ">")
	first := end
	brackets := s.rest()[1] == '?' && !bytes.HasPrefix(s.rest(), []byte("<?xml "))
	for brackets && !s.loose && end > 0 && s.rest()[end-2] != '?' {
		if end = s.until(end, ">"); end < 0 || end > maxInstruction {
			s.loose, end = true, first
		}
	}
	if bracket := bytes.IndexByte(s.rest()[:max(end, 0)], '['); bracket >= 0 && !s.rooted {
		if end = s.until(bracket, "]"); end >= 0 {
			end = s.until(end, ">")
		}
	}
	s.pos += max(end, 0)
	return end >= 0
}

// tagEnd returns where the tag that begins the rest ends: at its closing bracket, or at an opening
// one, which makes it text; -1 if neither comes. Quoted values may contain closing brackets. A quote
// that is not closed before the next opening bracket, which XML allows in no value, is no quote.
func (s *source) tagEnd() int {
	for n := 1; ; n++ {
		if n = s.untilAny(n, "<>'\""); n < 0 || s.rest()[n] == '<' || s.rest()[n] == '>' {
			return n
		}
		if !bytes.HasSuffix(trimmed(s.rest()[:n]), []byte("=")) {
			continue
		}
		ends := "'<"
		if s.rest()[n] == '"' {
			ends = "\"<"
		}
		closed := s.untilAny(n+1, ends)
		if closed < 0 || s.rest()[closed] == '<' {
			return s.untilAny(n, "<>")
		}
		n = closed
	}
}

// tag reads the tag whose closing bracket is at end.
func (s *source) tag(end int) token {
	tag := s.rest()[1:end]
	s.pos += end + 1
	t := token{kind: startToken}
	if tag[0] == '/' {
		t.kind, tag = endToken, tag[1:]
	}
	if n := len(tag) - 1; tag[n] == '/' {
		t.empty, tag = true, tag[:n]
	}
	t.name = tag
	if i := bytes.IndexAny(tag, " \t\n\f\r/"); i >= 0 {
		t.name, t.attrs = tag[:i], tag[i:]
	}
	if i := bytes.IndexByte(t.name, ':'); i >= 0 {
		t.space, t.name = t.name[:i], t.name[i+1:]
	}
	return t
}

// attr returns the decoded value of an attribute, by its lower-case name with its prefix, if any.
func (t *token) attr(name string) (value []byte, ok bool) {
	rest := t.attrs
	for {
		rest = bytes.TrimLeft(rest, " \t\n\f\r/")
		i := bytes.IndexByte(rest, '=')
		if i < 0 {
			return nil, false
		}
		key := trimmed(rest[:i])
		rest = bytes.TrimLeft(rest[i+1:], " \t\n\f\r")
		end := 0
		if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
			quote := rest[0]
			rest = rest[1:]
			end = bytes.IndexByte(rest, quote)
		} else {
			end = bytes.IndexAny(rest, " \t\n\f\r")
		}
		if end < 0 {
			end = len(rest)
		}
		if i := bytes.LastIndexAny(key, " \t\n\f\r"); i >= 0 {
			key = key[i+1:]
		}
		if bytes.EqualFold(key, []byte(name)) {
			return appendUnescaped(nil, rest[:end]), true
		}
		rest = rest[min(end+1, len(rest)):]
	}
}

// entities are the predefined ones of XML. Others must be declared, and are not resolved.
var entities = map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// appendUnescaped appends text with its references resolved. An ampersand that does not start a
// reference stands for itself: half of all URLs in sitemaps are not escaped.
func appendUnescaped(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:i]...), text[i:]
		end := bytes.IndexByte(text[:min(len(text), len("&#x10ffff;"))], ';')
		r, ok := rune(0), false
		if end > 0 {
			r, ok = reference(string(text[1:end]))
		}
		if !ok {
			dst, text = append(dst, '&'), text[1:]
			continue
		}
		dst, text = utf8.AppendRune(dst, r), text[end+1:]
	}
}

// reference returns the character of a reference without its ampersand and semicolon.
func reference(name string) (rune, bool) {
	if c, ok := entities[name]; ok {
		return rune(c), true
	}
	if len(name) < 2 || name[0] != '#' {
		return 0, false
	}
	digits, base := name[1:], 10
	if digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	return rune(n), err == nil && utf8.ValidRune(rune(n)) && n > 0
}
