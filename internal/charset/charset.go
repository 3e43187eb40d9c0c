// Package charset reads and writes text in the encodings of the Encoding Standard, as browsers do.
package charset

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// A Charset is an encoding. A nil Charset is UTF-8. Its methods are safe for concurrent use.
type Charset struct {
	name   string
	tables encoding.Encoding
	single interface { // the same tables, if all characters have one byte; else nil
		DecodeByte(b byte) rune
	}
}

// Named returns the encoding for a label; ok is false if there is none.
func Named(label string) (c *Charset, ok bool) {
	label = strings.Trim(label, blanks)
	if strings.EqualFold(label, "utf-8") || strings.EqualFold(label, "utf8") {
		return nil, true
	}
	tables, err := htmlindex.Get(label)
	if err != nil {
		return nil, false
	}
	name, err := htmlindex.Name(tables)
	switch {
	case err != nil:
		return nil, false
	case name == "utf-8":
		return nil, true
	}
	if name == "iso-8859-8-i" { // which differs in the direction of the text
		tables, _ = htmlindex.Get("iso-8859-8")
	}
	c = &Charset{name: name, tables: tables}
	c.single, _ = tables.(interface{ DecodeByte(b byte) rune })
	return c, true
}

func mustCharset(label string) *Charset {
	c, ok := Named(label)
	if !ok {
		panic("charset: no encoding " + label)
	}
	return c
}

// The encodings that declarations name indirectly.
var (
	UTF16LE     = mustCharset("utf-16le")
	UTF16BE     = mustCharset("utf-16be")
	Windows1252 = mustCharset("windows-1252")
)

// String returns the name of the encoding in lower case.
func (c *Charset) String() string {
	if c == nil {
		return "utf-8"
	}
	return c.name
}

// Opaque reports whether parts of characters can look like markup, so that a page must be converted
// before scanning. In all other encodings the ASCII bytes of markup are unambiguous: the second
// byte of a character is never a quote, a bracket, an ampersand or a blank.
func (c *Charset) Opaque() bool {
	if c == nil {
		return false
	}
	switch c.name {
	case "utf-16le", "utf-16be", "iso-2022-jp", "replacement":
		return true
	}
	return false
}

// Decode appends raw in UTF-8 to dst. Invalid sequences become U+FFFD.
func (c *Charset) Decode(dst, raw []byte) []byte {
	if c == nil {
		return appendValid(dst, raw)
	}
	decoder := c.decoder()
	for {
		n, read, err := decoder.Transform(dst[len(dst):cap(dst)], raw, true)
		dst, raw = dst[:len(dst)+n], raw[read:]
		if err != transform.ErrShortDst {
			return dst
		}
		dst = slices.Grow(dst, 3*len(raw)+utf8.UTFMax)
	}
}

// appendValid appends raw to dst, with U+FFFD for each maximal invalid part of a character, as
// browsers do.
func appendValid(dst, raw []byte) []byte {
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			size = truncatedRune(raw)
		}
		if r == utf8.RuneError {
			dst = append(dst, "\uFFFD"...)
		} else {
			dst = append(dst, raw[:size]...)
		}
		raw = raw[size:]
	}
	return dst
}

// truncatedRune returns the number of bytes of the incomplete character at the start of raw; 1 if
// there is none.
func truncatedRune(raw []byte) int {
	n := 1
	switch c := raw[0]; {
	case 0xe1 <= c && c <= 0xec, c == 0xee, c == 0xef, 0xf1 <= c && c <= 0xf3:
	case c == 0xe0 && len(raw) > 1 && raw[1] >= 0xa0, c == 0xed && len(raw) > 1 && raw[1] < 0xa0,
		c == 0xf0 && len(raw) > 1 && raw[1] >= 0x90, c == 0xf4 && len(raw) > 1 && raw[1] < 0x90:
	default:
		return 1
	}
	most := 2
	if raw[0] >= 0xf0 {
		most = 3
	}
	for n < most && n < len(raw) && raw[n]&0xc0 == 0x80 {
		n++
	}
	return n
}

// IsASCII reports whether all bytes of b are ASCII.
func IsASCII(b []byte) bool {
	for len(b) >= 8 {
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Letters returns the number of characters beyond ASCII in head, the beginning of a text in UTF-8,
// and -1 if it is not in UTF-8. The last character may be cut.
func Letters(head []byte) (n int) {
	for len(head) > 0 {
		r, size := utf8.DecodeRune(head)
		switch {
		case r == utf8.RuneError && size == 1 && utf8.FullRune(head):
			return -1
		case r == utf8.RuneError && size == 1:
			return n
		case r >= utf8.RuneSelf:
			n++
		}
		head = head[size:]
	}
	return n
}

// NewReader returns a reader of r's text in UTF-8.
func (c *Charset) NewReader(r io.Reader) io.Reader {
	if c == nil {
		return r
	}
	return transform.NewReader(r, c.decoder())
}

func (c *Charset) decoder() transform.Transformer {
	if c.single != nil {
		return singleByte{Charset: c}
	}
	return c.tables.NewDecoder()
}

// singleByte decodes characters of one byte.
type singleByte struct {
	transform.NopResetter
	*Charset
}

// Transform implements transform.Transformer.
func (s singleByte) Transform(dst, src []byte, _ bool) (written, read int, err error) {
	for {
		ascii, room := read, min(len(src), read+len(dst)-written)
		for ascii < room && src[ascii] < utf8.RuneSelf {
			ascii++
		}
		written += copy(dst[written:], src[read:ascii])
		switch read = ascii; {
		case read == len(src):
			return written, read, nil
		case len(dst)-written < utf8.UTFMax:
			return written, read, transform.ErrShortDst
		}
		written += utf8.EncodeRune(dst[written:], s.rune(src[read]))
		read++
	}
}

// rune returns the character of a byte. The tables of the Encoding Standard have a control character
// where ours have nothing from 0x80 to 0x9F, so the bytes of a mislabelled page survive in a query.
func (c *Charset) rune(b byte) rune {
	r := c.single.DecodeByte(b)
	if r == utf8.RuneError && isControl(rune(b)) {
		return rune(b)
	}
	return r
}

func isControl(r rune) bool { return 0x80 <= r && r <= 0x9f }

// Marked returns the encoding that a byte order mark gives, and the length of the mark. ok is false
// if there is none.
func Marked(text []byte) (c *Charset, mark int, ok bool) {
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return nil, 3, true
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		return UTF16BE, 2, true
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		return UTF16LE, 2, true
	}
	return nil, 0, false
}

// AsDeclared returns the encoding meant by a page that declares c itself. Since the ASCII
// declaration could be read, the page is not in UTF-16.
func (c *Charset) AsDeclared() *Charset {
	switch c.String() {
	case "utf-16le", "utf-16be":
		return nil
	case "x-user-defined":
		return Windows1252
	}
	return c
}

// OfXML returns the encoding of an XML declaration: the standard's "get an XML encoding",
// including its check for UTF-16.
func OfXML(head []byte) (c *Charset, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte("<\x00?\x00x\x00")):
		return UTF16LE, true
	case bytes.HasPrefix(head, []byte("\x00<\x00?\x00x")):
		return UTF16BE, true
	case !bytes.HasPrefix(head, []byte("<?xml")):
		return nil, false
	}
	declaration, _, ok := strings.Cut(string(head), ">")
	i := strings.Index(declaration, "encoding")
	if !ok || i < 0 {
		return nil, false
	}
	control := func(r rune) bool { return r <= ' ' }
	rest := strings.TrimLeftFunc(declaration[i+len("encoding"):], control)
	if !strings.HasPrefix(rest, "=") {
		return nil, false
	}
	rest = strings.TrimLeftFunc(rest[1:], control)
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return nil, false
	}
	label, _, ok := strings.Cut(rest[1:], rest[:1])
	if !ok || strings.ContainsFunc(label, control) {
		return nil, false
	}
	if c, ok = Named(label); !ok {
		return nil, false
	}
	return c.AsDeclared(), true
}

// blanks is white space as HTML defines it.
const blanks = " \t\n\f\r"

// OfContent returns the label in the content of a meta element, or "": the HTML standard's "algorithm
// for extracting a character encoding from a meta element" (2.6.5).
func OfContent(s string) string {
	for {
		i := indexFold(s, "charset")
		if i < 0 {
			return ""
		}
		s = strings.TrimLeft(s[i+len("charset"):], blanks)
		if !strings.HasPrefix(s, "=") {
			continue
		}
		s = strings.TrimLeft(s[1:], blanks)
		if s == "" {
			return ""
		}
		if s[0] == '"' || s[0] == '\'' {
			label, _, ok := strings.Cut(s[1:], s[:1])
			if !ok {
				return ""
			}
			return label
		}
		if end := strings.IndexAny(s, blanks+";"); end >= 0 {
			s = s[:end]
		}
		return s
	}
}

// indexFold returns where in s the ASCII word is, in any case, or -1.
func indexFold(s, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
