package sitemap

import (
	"bytes"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"

	"golang.org/x/net/html"
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
	empty bool   // a start tag that also ends its element
}

// markup reads a document as HTML, whose tokenizer makes something of everything: an XML parser would
// give up at the first unescaped bracket.
type markup struct {
	*html.Tokenizer
	cut bool // the document has ended within a comment or a section
}

func newMarkup(r io.Reader) *markup {
	m := &markup{Tokenizer: html.NewTokenizer(r)}
	m.SetMaxBuf(MaxToken)
	m.AllowCDATA(true)
	return m
}

// next returns the next token, skipping comments and declarations.
func (m *markup) next() (token, error) {
	for {
		kind := m.Next()
		raw := m.Raw()
		switch kind {
		case html.ErrorToken:
			return token{}, m.failure()
		case html.TextToken:
			section, ok := bytes.CutPrefix(raw, []byte("<![CDATA["))
			if !ok {
				return token{text: raw}, nil
			}
			section, ok = bytes.CutSuffix(section, []byte("]]>"))
			m.cut = !ok
			return token{kind: cdataToken, text: section}, nil
		case html.EndTagToken:
			return tag(endToken, raw[len("</"):]), nil
		case html.StartTagToken, html.SelfClosingTagToken:
			m.NextIsNotRawText() // as in HTML that of a title
			t := tag(startToken, raw[len("<"):])
			t.empty = kind == html.SelfClosingTagToken
			return t, nil
		}
		m.cut = !bytes.HasSuffix(raw, []byte(">"))
	}
}

// tag returns the tag that begins with a name.
func tag(kind tokenKind, rest []byte) token {
	name := rest[:bytes.IndexAny(rest, " \t\n\f\r/>")]
	if space, local, ok := bytes.Cut(name, []byte(":")); ok {
		return token{kind: kind, space: space, name: local}
	}
	return token{kind: kind, name: name}
}

// failure says why there is no other token.
func (m *markup) failure() error {
	switch err := m.Err(); {
	case err == html.ErrBufferExceeded:
		return ErrTooLarge
	case err == io.EOF && (m.cut || len(m.Raw()) > 0):
		return io.ErrUnexpectedEOF
	default:
		return err
	}
}

// attributes iterates over those of the tag just read, with their names in lower case.
func (m *markup) attributes() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for {
			name, value, more := m.TagAttr()
			if len(name) > 0 && !yield(string(name), value) || !more {
				return
			}
		}
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
