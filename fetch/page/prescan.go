package page

import (
	"strings"

	"github.com/spinneret-go/spinneret/internal/charset"
)

// prescanned is the length of the prefix of a page that may declare its encoding.
const prescanned = 1024

// plain is for the prescan, since labels are ASCII. A scanner that passes on no text does not change it.
var plain = decoder{known: true, done: true}

// prescan looks for a meta element that declares the encoding. Unlike the HTML standard's "prescan a
// byte stream to determine its encoding" (13.2.3.2), it finds elements as the rest of this package
// does: what is the text of a script is none.
func prescan(head []byte) (c *charset.Charset, ok bool) {
	s := scanner{page: head, decoder: &plain}
	for s.next() {
		if s.tag.element != elemMeta {
			continue
		}
		if s.tag.has(attrCharset) {
			c, ok = charset.Named(string(s.tag.get(attrCharset)))
		} else if equalFold(s.tag.get(attrHTTPEquiv), "content-type") {
			c, ok = charset.Named(charsetOfContent(string(s.tag.get(attrContent))))
		}
		if ok {
			return c.AsDeclared(), true
		}
	}
	return nil, false
}

// charsetOfContent returns the label in the content of a meta element: the standard's "algorithm
// for extracting a character encoding from a meta element" (2.6.5).
func charsetOfContent(s string) string {
	for {
		i := indexFold(s, "charset")
		if i < 0 {
			return ""
		}
		s = strings.TrimLeft(s[i+len("charset"):], whitespace)
		if !strings.HasPrefix(s, "=") {
			continue
		}
		s = strings.TrimLeft(s[1:], whitespace)
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
		if end := strings.IndexAny(s, whitespace+";"); end >= 0 {
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
