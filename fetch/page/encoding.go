package page

import (
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/charset"
)

// declared returns the encoding given by a byte order mark or the Content-Type field, and the
// length of the mark. ok is false if neither gives one. The field is read like the content of a meta
// element that stands for it.
func declared(body []byte, contentType string) (c *charset.Charset, mark int, ok bool) {
	if c, mark, ok = charset.Marked(body); ok {
		return c, mark, true
	}
	c, ok = charset.Named(charset.OfContent(contentType))
	return c, 0, ok
}

// sniffed returns the encoding of a page that has neither a mark nor a Content-Type that declares
// one.
func sniffed(body []byte, xml bool) *charset.Charset {
	head := body[:min(len(body), prescanned)]
	if !xml {
		if c, ok := prescan(head); ok {
			return c
		}
	}
	if c, ok := charset.OfXML(head); ok {
		return c
	}
	// The standard leaves the rest to the user's language. We check the whole page, because UTF-8
	// often starts with a kilobyte of ASCII. The last character may be cut, as the page may be.
	if xml || utf8.Valid(body) || charset.Letters(body) > 0 || len(head) < len(body) && charset.Letters(head) > 0 {
		return nil
	}
	return charset.Windows1252
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
