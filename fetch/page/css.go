package page

import (
	"bytes"
	"iter"
	"unicode/utf8"
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
// that it has to be converted before it is read.
func decodeCSS(css []byte, contentType string) []byte {
	c, mark, ok := declared(css, contentType)
	if rest, found := bytes.CutPrefix(css, []byte(`@charset "`)); !ok && found {
		if label, _, found := bytes.Cut(rest[:min(len(rest), prescanned)], []byte(`";`)); found {
			if c, ok = charsetNamed(string(label)); ok {
				c = c.asDeclared()
			}
		}
	}
	if css = css[mark:]; c == nil && utf8.Valid(css) {
		return css
	}
	return c.decode(nil, css)
}

func (w *walker) styles(css []byte) error {
	for url := range cssURLs(css) {
		if err := w.resource(Resource, url); err != nil {
			return err
		}
	}
	return nil
}

// cssURLs walks over the URLs of a style sheet. It knows as much of CSS as it takes not to be
// fooled by comments and strings.
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

// cssScanner is a walk over a style sheet. It needs no idea of rules and blocks: url() means the
// same in all of them, and what looks like it in a selector has no use there.
type cssScanner struct {
	css      []byte
	pos      int
	imported bool // @import was the last word: a string is a URL
}

// next moves over one token, or a byte of something else, and returns the URL that it is.
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
		// A blank before the parenthesis would make it a word and a block.
		if equalFold(word, "url") && s.pos < len(s.css) && s.css[s.pos] == '(' {
			return s.url(), true
		}
		return nil, false
	case c == '\\':
		s.pos++ // and what follows is no quote
	}
	s.imported = false
	s.pos = min(s.pos+1, len(s.css))
	return nil, false
}

// comment skips a comment. As in HTML one that is not closed takes all the rest, so that a browser
// sees no more of the sheet than we do.
func (s *cssScanner) comment() {
	s.pos += len("/*")
	if i := bytes.Index(s.css[s.pos:], []byte("*/")); i >= 0 {
		s.pos += i + len("*/")
		return
	}
	s.pos = len(s.css)
}

// word returns the identifier or at-keyword that begins here. To take the whole of it at once is
// what tells url( from my-url(.
func (s *cssScanner) word() []byte {
	start := s.pos
	for s.pos++; s.pos < len(s.css) && isIdent(s.css[s.pos]); {
		s.pos++
	}
	return s.css[start:s.pos]
}

// text returns what stands in the quotes that begin here. A line end closes them, too: it shows
// that the quotes were forgotten.
func (s *cssScanner) text() []byte {
	quote := s.css[s.pos]
	s.pos++
	start := s.pos
	for ; s.pos < len(s.css); s.pos++ {
		switch s.css[s.pos] {
		case quote, '\n':
			// Either is left behind: the next quote begins a text, and does not end this one.
			s.pos++
			return unescapeCSS(s.css[start : s.pos-1])
		case '\\':
			// A line end that is escaped ends nothing, be it one byte or two.
			if s.pos++; bytes.HasPrefix(s.css[min(s.pos, len(s.css)):], []byte("\r\n")) {
				s.pos++
			}
		}
	}
	s.pos = len(s.css)
	return unescapeCSS(s.css[start:])
}

// url returns what stands in the parentheses that begin here, with quotes or without.
func (s *cssScanner) url() []byte {
	s.pos++
	for s.pos < len(s.css) && isSpace(s.css[s.pos]) {
		s.pos++
	}
	if s.pos < len(s.css) && (s.css[s.pos] == '"' || s.css[s.pos] == '\'') {
		return s.text()
	}
	start := s.pos
	for ; s.pos < len(s.css) && s.css[s.pos] != ')'; s.pos++ {
		if s.css[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos = min(s.pos, len(s.css))
	return unescapeCSS(trimmed(s.css[start:s.pos]))
}

// unescapeCSS undoes backslashes, of which hardly any URL has one.
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
			// A line end is only a longer line; anything else stands for itself.
			if i++; b[i] != '\n' {
				out = append(out, b[i])
			}
			continue
		case code == 0 || !utf8.ValidRune(code):
			code = utf8.RuneError
		}
		out = utf8.AppendRune(out, code)
		if i+1 < len(b) && isSpace(b[i+1]) {
			i++ // it ends the number
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

// isIdent reports whether c may be in an identifier. Escapes may be, too, but not in any word that
// matters here.
func isIdent(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '-' || c == '_' || c >= utf8.RuneSelf
}
