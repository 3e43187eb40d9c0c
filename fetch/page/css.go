package page

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/charset"
)

// Styles returns an iterator over the URLs of a style sheet, those of url() and @import, as links
// of kind Resource. base is the URL of the style sheet, and contentType its Content-Type, or "".
// Its encoding is that of a byte order mark, the Content-Type or its @charset, in this order, and
// UTF-8 otherwise. Limits, errors and strings are those of [Links].
func Styles(css []byte, base, contentType string) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		err := w.begin(base)
		if err == nil {
			err = w.styles(decodeCSS(css, contentType))
		}
		w.end(err)
	}
}

// decodeCSS returns a style sheet in UTF-8. The second byte of a character can be a backslash, so
// it must be converted before it is parsed.
func decodeCSS(css []byte, contentType string) []byte {
	c, mark, ok := declared(css, contentType)
	if rest, found := bytes.CutPrefix(css, []byte(`@charset "`)); !ok && found {
		if label, _, found := bytes.Cut(rest[:min(len(rest), prescanned)], []byte(`";`)); found {
			if c, ok = charset.Named(string(label)); ok {
				c = c.AsDeclared()
			}
		}
	}
	if css = css[mark:]; c == nil && utf8.Valid(css) {
		return css
	}
	return c.Decode(nil, css)
}

func (w *walker) styles(css []byte) error {
	for url := range cssURLs(css) {
		if bytes.HasPrefix(url, []byte("#")) { // a part of this document, whatever its base
			continue
		}
		if err := w.resource(Resource, url); err != nil {
			return err
		}
	}
	return nil
}

// cssURLs iterates over the URLs of a style sheet. It parses only as much CSS as is needed to skip
// comments and strings.
func cssURLs(css []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := cssScanner{css: css}
		for s.pos < len(css) {
			if url, ok := s.next(); ok && !yield(url) {
				return
			}
		}
	}
}

// cssScanner is a position in a style sheet. It ignores rules and blocks: url() means the same in
// all of them, and something similar in a selector has no effect.
type cssScanner struct {
	css      []byte
	pos      int
	imported bool // the previous token was @import: a string is a URL
	named    bool // in @namespace, whose URL is a name
}

// next skips one token, or one byte of something else, and returns the URL if the token is one.
func (s *cssScanner) next() (url []byte, ok bool) {
	c := s.css[s.pos]
	switch {
	case c == '/' && bytes.HasPrefix(s.css[s.pos:], []byte("/*")):
		s.comment()
		return nil, false
	case isSpace(c):
		s.pos++
		return nil, false
	case c == '"' || c == '\'':
		text := s.text()
		ok, s.imported = s.imported, false
		return text, ok
	case c == '@' || isIdent(c):
		word := s.word()
		s.imported = equalFold(word, "@import")
		s.named = s.named || equalFold(word, "@namespace")
		// With a blank before the parenthesis it is a word and a block.
		if equalFold(word, "url") && s.pos < len(s.css) && s.css[s.pos] == '(' {
			return s.url(), !s.named
		}
		return nil, false
	case c == '\\':
		s.pos++ // so that it does not start a string
	case c == ';', c == '{', c == '}':
		s.named = false
	}
	s.imported = false
	s.pos = min(s.pos+1, len(s.css))
	return nil, false
}

// comment skips a comment. As in HTML, an unclosed one extends to the end, so that we see the same
// part of the sheet as a browser.
func (s *cssScanner) comment() {
	s.pos += len("/*")
	if i := bytes.Index(s.css[s.pos:], []byte("*/")); i >= 0 {
		s.pos += i + len("*/")
		return
	}
	s.pos = len(s.css)
}

// word returns the identifier or at-keyword at the current position. Reading all of it
// distinguishes url( from my-url(.
func (s *cssScanner) word() []byte {
	start := s.pos
	for s.pos++; s.pos < len(s.css) && isIdent(s.css[s.pos]); {
		s.pos++
	}
	return s.css[start:s.pos]
}

// text returns the contents of the quoted string at the current position. A line end closes it,
// too: the closing quote was forgotten.
func (s *cssScanner) text() []byte {
	quote := s.css[s.pos]
	s.pos++
	start := s.pos
	for ; s.pos < len(s.css); s.pos++ {
		switch s.css[s.pos] {
		case quote, '\n', '\r', '\f':
			// Skip the closing quote or the line end. The next quote starts a string.
			s.pos++
			return unescapeCSS(s.css[start : s.pos-1])
		case '\\':
			// An escaped line end, of one byte or two, does not end the string.
			if s.pos++; bytes.HasPrefix(s.css[min(s.pos, len(s.css)):], []byte("\r\n")) {
				s.pos++
			}
		}
	}
	s.pos = len(s.css)
	return unescapeCSS(s.css[start:])
}

// url returns the contents of the parentheses at the current position, with or without quotes.
func (s *cssScanner) url() []byte {
	s.pos++
	for s.pos < len(s.css) && isSpace(s.css[s.pos]) {
		s.pos++
	}
	if s.pos < len(s.css) && (s.css[s.pos] == '"' || s.css[s.pos] == '\'') {
		return s.text()
	}
	start, bad := s.pos, false
	for ; s.pos < len(s.css) && s.css[s.pos] != ')'; s.pos++ {
		switch s.css[s.pos] {
		case '\\':
			s.pos++
		case '"', '\'', '(':
			bad = true
		}
	}
	s.pos = min(s.pos, len(s.css))
	url := trimmed(s.css[start:s.pos])
	if bad || bytes.IndexByte(url, '\\') < 0 && bytes.ContainsAny(url, whitespace) {
		return nil // browsers load nothing
	}
	return unescapeCSS(url)
}

// unescapeCSS removes backslash escapes, which are rare in URLs.
func unescapeCSS(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var out []byte
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		code, digits := rune(0), 0
		for i+1 < len(b) && digits < 6 && hexValue(b[i+1]) >= 0 {
			i++
			digits++
			code = code<<4 | hexValue(b[i])
		}
		switch {
		case digits == 0:
			// An escaped line end disappears; any other character stands for itself.
			if i++; b[i] != '\n' && b[i] != '\f' {
				out = append(out, b[i])
			}
			continue
		case code == 0 || !utf8.ValidRune(code):
			code = utf8.RuneError
		}
		out = utf8.AppendRune(out, code)
		if i+1 < len(b) && isSpace(b[i+1]) {
			i++ // one blank ends the number
		}
	}
	return out
}

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(c byte) rune {
	switch {
	case isDigit(c):
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// isIdent reports whether c may be in an identifier. Escapes may be as well, but not in the
// keywords that matter here.
func isIdent(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '-' || c == '_' || c >= utf8.RuneSelf
}
