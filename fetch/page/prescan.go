package page

import "github.com/spinneret-go/spinneret/internal/charset"

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
			c, ok = charset.Named(charset.OfContent(string(s.tag.get(attrContent))))
		}
		if ok {
			return c.AsDeclared(), true
		}
	}
	return nil, false
}
