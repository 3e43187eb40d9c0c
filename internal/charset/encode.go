package charset

import (
	"strconv"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// Encoder returns the encoder for the queries of links on a page in the encoding; nil means UTF-8,
// which is also the output encoding of UTF-16.
func (c *Charset) Encoder() weburl.Encoder {
	if c == nil {
		return nil
	}
	switch c.name {
	case "utf-16le", "utf-16be", "replacement":
		return nil
	case "iso-2022-jp":
		return encodeISO2022JP
	}
	return func(dst []byte, text string) []byte {
		e := c.tables.NewEncoder()
		for _, r := range text {
			var ok bool
			if dst, ok = c.appendRune(dst, e, r); !ok {
				dst = appendUnknown(dst, r)
			}
		}
		return dst
	}
}

// appendUnknown appends what a form sends for a character that its encoding lacks.
func appendUnknown(dst []byte, r rune) []byte {
	return append(strconv.AppendInt(append(dst, "%26%23"...), int64(r), 10), "%3B"...)
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
	bytes, ok := encodeRune(e, r)
	switch {
	case !ok:
		return dst, false
	case c.name == "euc-jp" && bytes[0] == 0x8f: // JIS X 0212 is only decoded, never encoded
		return dst, false
	case c.name == "big5" && bytes[0] < 0xa1: // and so are the Hong Kong supplements
		return dst, false
	}
	return append(dst, bytes...), true
}

// encodeRune returns the bytes of r.
func encodeRune(e transform.Transformer, r rune) ([]byte, bool) {
	var in [utf8.UTFMax]byte
	out := make([]byte, 8)
	e.Reset()
	n, _, err := e.Transform(out, in[:utf8.EncodeRune(in[:], r)], true)
	return out[:n], err == nil && n > 0
}

var eucJP = mustCharset("euc-jp")

// The escape sequences with which ISO-2022-JP changes its character set.
const (
	toASCII  = "\x1b(B"
	toRoman  = "\x1b(J"
	toDouble = "\x1b$B"
)

// encodeISO2022JP is the standard's ISO-2022-JP encoder (12.2.2). Its characters are those of
// EUC-JP without the highest bit.
func encodeISO2022JP(dst []byte, text string) []byte {
	e := eucJP.tables.NewEncoder()
	state := toASCII
	enter := func(to string) {
		if state != to {
			dst, state = append(dst, to...), to
		}
	}
	for _, r := range text {
		switch {
		case r == 0x0e || r == 0x0f || r == 0x1b: // they would change the set
			enter(toASCII)
			dst = appendUnknown(dst, utf8.RuneError)
		case r == '\u00a5':
			enter(toRoman)
			dst = append(dst, '\\')
		case r == '\u203e':
			enter(toRoman)
			dst = append(dst, '~')
		case r < utf8.RuneSelf:
			if state != toRoman || r == '\\' || r == '~' {
				enter(toASCII)
			}
			dst = append(dst, byte(r))
		default:
			double, ok := encodeRune(e, fullWidth(r))
			if !ok || len(double) != 2 || double[0] < 0xa1 {
				enter(toASCII)
				dst = appendUnknown(dst, r)
				continue
			}
			enter(toDouble)
			dst = append(dst, double[0]&0x7f, double[1]&0x7f)
		}
	}
	enter(toASCII)
	return dst
}

// halfWidth lists the full-width forms of U+FF61 to U+FF9F, which ISO-2022-JP lacks.
var halfWidth = []rune("。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテト" +
	"ナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜")

// fullWidth returns the character that stands for r in ISO-2022-JP.
func fullWidth(r rune) rune {
	switch {
	case r == '\u2212':
		return '\uff0d'
	case 0xff61 <= r && r <= 0xff9f:
		return halfWidth[r-0xff61]
	}
	return r
}
