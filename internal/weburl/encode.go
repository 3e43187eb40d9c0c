package weburl

import "unicode/utf8"

// class is a set of properties of a byte: the percent-encode sets that it is in, and others that
// the scanning loops need.
type class uint16

const (
	inControl class = 1 << iota
	inFragment
	inQuery
	inSpecialQuery
	inPath
	inUserinfo
	inOpaqueHost // forbidden in any host
	inDomain     // forbidden in a domain, or in need of mapping
	isSlash
	isBackslash
	startsDot // may be the first byte of a dot segment
)

// classOf lets the inner loops look up one value per byte. The sets are built as in the standard,
// from the smallest to the largest.
var classOf = func() (table [256]class) {
	add := func(chars string, set class) {
		for i := range len(chars) {
			table[chars[i]] |= set
		}
	}
	for c := range table {
		if c < ' ' || c > '~' {
			table[c] = inControl | inFragment | inQuery | inSpecialQuery | inPath | inUserinfo |
				inDomain
		}
	}
	add(" \"<>", inFragment|inQuery|inSpecialQuery|inPath|inUserinfo)
	add("`", inFragment|inPath|inUserinfo)
	add("#", inQuery|inSpecialQuery|inPath|inUserinfo)
	add("'", inSpecialQuery)
	add("?^{}", inPath|inUserinfo)
	add("/:;=@[\\]|", inUserinfo)
	add("\x00\t\n\r #/:<>?@[\\]^|", inOpaqueHost|inDomain)
	add("%ABCDEFGHIJKLMNOPQRSTUVWXYZ", inDomain)
	add("/", isSlash)
	add("\\", isBackslash)
	add(".%", startsDot)
	return table
}()

// until returns the index of the first byte that is in one of the sets, or the length of s. Looking at
// bytes instead of code points is enough, since everything beyond ASCII is in the same sets.
func until(s string, set class) int {
	for i := range len(s) {
		if classOf[s[i]]&set != 0 {
			return i
		}
	}
	return len(s)
}

// has reports whether a byte of s is in one of the sets.
func has(s string, set class) bool { return until(s, set) < len(s) }

// encode returns s with the bytes of set percent-encoded, or s itself if there are none. Percent
// signs are unchanged, so nothing is encoded twice.
func encode(s string, set class) string {
	if !has(s, set) {
		return s
	}
	return string(appendEncoded(make([]byte, 0, len(s)+len(s)/2), s, set))
}

// An Encoder appends text to dst in some encoding. A character that the encoding lacks is appended
// as a percent-encoded numeric character reference, such as %26%238364%3B, as browsers do
// ("percent-encode after encoding").
type Encoder func(dst []byte, text string) []byte

// encodeWith encodes s with the encoder, and then percent-encodes the bytes of set.
func encodeWith(s string, set class, encoder Encoder) string {
	if !has(s, set) {
		return s
	}
	encoded := encoder(nil, s)
	out := make([]byte, 0, 2*len(encoded))
	for _, c := range encoded {
		out = appendByte(out, c, set)
	}
	return string(out)
}

// appendByte appends c, percent-encoded if it is in set.
func appendByte(dst []byte, c byte, set class) []byte {
	const hex = "0123456789ABCDEF"
	if classOf[c]&set == 0 {
		return append(dst, c)
	}
	return append(dst, '%', hex[c>>4], hex[c&15])
}

// appendEncoded appends s with the bytes of set percent-encoded. It requires that set contains all
// bytes beyond ASCII, as all encode sets do.
func appendEncoded(dst []byte, s string, set class) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			dst = appendByte(dst, c, set)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		var bytes [utf8.UTFMax]byte // not s[i:], which may be invalid UTF-8
		for _, c := range bytes[:utf8.EncodeRune(bytes[:], r)] {
			dst = appendByte(dst, c, set)
		}
	}
	return dst
}
