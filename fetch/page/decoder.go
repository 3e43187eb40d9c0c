package page

import (
	"bytes"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/charset"
)

// decoder converts only the interesting parts of a page to UTF-8, since most of a page is ASCII
// markup. It determines the encoding of the page when it first needs it.
type decoder struct {
	body  []byte // without its byte order mark
	xml   bool
	known bool             // page is set
	page  *charset.Charset // the encoding of the page
	done  bool             // the scanned text is UTF-8 already
	buf   []byte           // scratch
}

// open returns the text to be scanned.
func (d *decoder) open(body []byte, contentType string) []byte {
	c, mark, ok := declared(body, contentType)
	d.body, d.xml = body[mark:], isXML(contentType)
	switch {
	case ok:
		d.page, d.known = c, true
	case mayBeOpaque(d.body):
		d.encoding()
	}
	if d.known && d.page.Opaque() {
		d.done = true
		return d.page.Decode(nil, d.body)
	}
	return d.body
}

// mayBeOpaque reports whether a page may declare an encoding that must be converted before
// scanning, so that other pages need no prescan. Such encodings have ISO-2022, HZ-GB-2312 or
// replacement in their names; UTF-16 starts with a NUL.
func mayBeOpaque(body []byte) bool {
	head := body[:min(len(body), prescanned)]
	return bytes.Contains(head, []byte("2022")) || bytes.Contains(head, []byte("2312")) ||
		bytes.Contains(bytes.ToLower(head), []byte("replacement")) ||
		bytes.IndexByte(head[:min(2, len(head))], 0) >= 0
}

// encoding returns the encoding of the page.
func (d *decoder) encoding() *charset.Charset {
	if !d.known {
		d.page, d.known = sniffed(d.body, d.xml), true
	}
	return d.page
}

// convert returns raw, a part of the scanned text, in UTF-8: either raw itself, or the end of dst,
// to which the result was appended.
func (d *decoder) convert(dst, raw []byte) []byte {
	if c, needed := d.needed(raw); needed {
		return c.Decode(dst, raw)[len(dst):]
	}
	return raw
}

// text is convert with a result that is valid until the next call.
func (d *decoder) text(raw []byte) []byte {
	if c, needed := d.needed(raw); needed {
		d.buf = c.Decode(d.buf[:0], raw)
		return d.buf
	}
	return raw
}

// needed reports whether raw must be converted, and from which encoding.
func (d *decoder) needed(raw []byte) (c *charset.Charset, needed bool) {
	if charset.IsASCII(raw) {
		return nil, false
	}
	if c = d.encoding(); d.done {
		c = nil
	}
	return c, c != nil || !utf8.Valid(raw)
}

// encode converts a query to the encoding of the page. It is a weburl.Encoder.
func (d *decoder) encode(dst []byte, text string) []byte {
	if encode := d.encoding().Encoder(); encode != nil {
		return encode(dst, text)
	}
	return append(dst, text...)
}
