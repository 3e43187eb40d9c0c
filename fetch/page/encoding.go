package page

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// charset is an encoding of the Encoding Standard. A nil charset is UTF-8.
type charset struct {
	name   string
	tables encoding.Encoding
}

// charsetNamed returns the encoding for a label; ok is false if there is none.
func charsetNamed(label string) (c *charset, ok bool) {
	label = strings.Trim(label, whitespace)
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
	return &charset{name, tables}, true
}

func mustCharset(label string) *charset {
	c, ok := charsetNamed(label)
	if !ok {
		panic("page: no encoding " + label)
	}
	return c
}

var (
	utf16le     = mustCharset("utf-16le")
	utf16be     = mustCharset("utf-16be")
	windows1252 = mustCharset("windows-1252")
)

// String returns the name of the encoding in lower case.
func (c *charset) String() string {
	if c == nil {
		return "utf-8"
	}
	return c.name
}

// opaque reports whether parts of characters can look like markup, so that a page must be converted
// before scanning. In all other encodings the ASCII bytes of markup are unambiguous: the second
// byte of a character is never a quote, a bracket, an ampersand or a blank.
func (c *charset) opaque() bool {
	if c == nil {
		return false
	}
	switch c.name {
	case "utf-16le", "utf-16be", "iso-2022-jp", "replacement":
		return true
	}
	return false
}

// decode appends raw in UTF-8 to dst. Invalid sequences become U+FFFD.
func (c *charset) decode(dst, raw []byte) []byte {
	if c == nil {
		return appendValid(dst, raw)
	}
	decoder := c.tables.NewDecoder()
	for {
		n, read, err := decoder.Transform(dst[len(dst):cap(dst)], raw, true)
		dst, raw = dst[:len(dst)+n], raw[read:]
		if err != transform.ErrShortDst {
			return dst
		}
		dst = slices.Grow(dst, 2*len(raw)+utf8.UTFMax)
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

// isASCII reports whether all bytes of b are ASCII.
func isASCII(b []byte) bool {
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

// declared returns the encoding given by a byte order mark or the Content-Type field, and the
// length of the mark. ok is false if neither gives one.
func declared(body []byte, contentType string) (c *charset, mark int, ok bool) {
	switch {
	case bytes.HasPrefix(body, utf8BOM):
		return nil, len(utf8BOM), true
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return utf16be, 2, true
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return utf16le, 2, true
	}
	if label := charsetParam(contentType); label != "" {
		c, ok = charsetNamed(label)
	}
	return c, 0, ok
}

// utf8BOM marks a page as UTF-8, and is not part of its text.
var utf8BOM = []byte("\xef\xbb\xbf")

// sniffed returns the encoding of a page that has neither a mark nor a Content-Type that declares
// one.
func sniffed(body []byte, xml bool) *charset {
	head := body[:min(len(body), prescanned)]
	if !xml {
		if c, ok := prescan(head); ok {
			return c
		}
	}
	if c, ok := xmlEncoding(head); ok {
		return c
	}
	// The standard leaves the rest to the user's language. We check the whole page, because UTF-8
	// often starts with a kilobyte of ASCII.
	if xml || utf8.Valid(body) || validHead(head, len(body)) {
		return nil
	}
	return windows1252
}

// validHead reports whether head is valid UTF-8 and has a character beyond ASCII. The last
// character may be incomplete if the page continues.
func validHead(head []byte, size int) bool {
	if len(head) < size {
		for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
			if last := head[len(head)-i:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					head = head[:len(head)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(head) && !isASCII(head)
}

// charsetParam returns the charset parameter of a Content-Type field; "" if it has none.
func charsetParam(contentType string) string {
	_, rest, _ := strings.Cut(contentType, ";")
	for rest != "" {
		rest = strings.TrimLeft(rest, " \t\r\n;")
		end := strings.IndexAny(rest, ";=")
		if end < 0 {
			return ""
		}
		name := rest[:end]
		if rest[end] == ';' {
			rest = rest[end:]
			continue
		}
		value := rest[end+1:]
		if strings.HasPrefix(value, `"`) {
			value, rest, _ = strings.Cut(value[1:], `"`)
		} else {
			value, rest, _ = strings.Cut(value, ";")
		}
		if strings.EqualFold(name, "charset") {
			return strings.Trim(value, " \t\r\n")
		}
	}
	return ""
}

// isXML reports whether a Content-Type marks the page as XML, so that browsers use an XML parser.
func isXML(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	if kind = strings.TrimSpace(kind); len(kind) < len("text/xml") {
		return false
	}
	end := kind[len(kind)-len("+xml"):]
	return strings.EqualFold(end, "+xml") || strings.EqualFold(end, "/xml")
}
