package charset

import (
	"strconv"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"golang.org/x/text/encoding"
)

// Encoder returns the encoder for the queries of links on a page in the encoding; nil means UTF-8,
// which is also the output encoding of UTF-16. For ISO-2022-JP, in which such links are hardly ever
// written without escapes, it departs from the standard.
func (c *Charset) Encoder() weburl.Encoder {
	if c == nil || c.Opaque() {
		return nil
	}
	return func(dst []byte, text string) []byte {
		e := c.tables.NewEncoder()
		for _, r := range text {
			var ok bool
			if dst, ok = c.appendRune(dst, e, r); !ok { // what a form sends for it
				dst = append(strconv.AppendInt(append(dst, "%26%23"...), int64(r), 10), "%3B"...)
			}
		}
		return dst
	}
}

// appendRune appends r in the encoding, and reports whether the encoding has r. Some tables know
// more characters than the Encoding Standard lets an encoder use; the standard decides.
func (c *Charset) appendRune(dst []byte, e *encoding.Encoder, r rune) ([]byte, bool) {
	if r < utf8.RuneSelf {
		return append(dst, byte(r)), true
	}
	switch c.name {
	case "shift_jis", "euc-jp":
		switch r {
		case '\u00a5':
			return append(dst, '\\'), true
		case '\u203e':
			return append(dst, '~'), true
		case '\u2212':
			r = '\uff0d'
		}
	case "gb18030":
		if r == '\ue5e5' {
			return dst, false
		}
	}
	if c.single != nil && isControl(r) && c.rune(byte(r)) == r {
		return append(dst, byte(r)), true
	}
	var in, out [8]byte
	e.Reset()
	n, _, err := e.Transform(out[:], in[:utf8.EncodeRune(in[:], r)], true)
	bytes := out[:n]
	switch {
	case err != nil || n == 0:
		return dst, false
	case c.name == "euc-jp" && bytes[0] == 0x8f: // JIS X 0212 is only decoded, never encoded
		return dst, false
	case c.name == "big5" && bytes[0] < 0xa1: // and so are the Hong Kong supplements
		return dst, false
	}
	return append(dst, bytes...), true
}
