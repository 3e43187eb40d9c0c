package robots

import (
	"iter"
	"strings"
	"unicode/utf16"
)

// maxLine is how much of a line counts, in bytes. It is the limit of Google's parser: eight
// times what browsers accept as a URL, less the NUL at the end of a C string.
const maxLine = 2083*8 - 1

// Only what is ASCII counts as blank, as in Google's parser: a pattern may hold any other octet,
// and those of UTF-8 must not be mistaken for blanks of some other encoding.
const (
	blanks    = " \t"
	asciiTrim = " \t\v\f"
	lineEnds  = "\r\n"
)

// A kind tells what a record's key means.
type kind uint8

const (
	unknownKind kind = iota
	agentKind
	allowKind
	disallowKind
	delayKind
	sitemapKind
)

// keys are compared by prefix, as Google's parser does ("Disallowed:", "allowance:"), together
// with the misspellings that it accepts because they are frequent.
var keys = []struct {
	prefix string
	kind   kind
}{
	{"disallow", disallowKind},
	{"allow", allowKind},
	{"user-agent", agentKind},
	{"useragent", agentKind},
	{"user agent", agentKind},
	{"sitemap", sitemapKind},
	{"site-map", sitemapKind},
	{"crawl-delay", delayKind},
	{"crawldelay", delayKind},
	{"crawl delay", delayKind},
	{"dissallow", disallowKind},
	{"dissalow", disallowKind},
	{"disalow", disallowKind},
	{"diasllow", disallowKind},
	{"disallaw", disallowKind},
}

// record is one line that has a key, known or not.
type record struct {
	kind       kind
	key, value string
	line       int32 // from 1
}

// decode returns the part of a body that is read, as text without a byte order mark.
func decode(body []byte) string {
	head := body[:min(len(body), MaxSize)]
	text := string(head)
	switch {
	case strings.HasPrefix(text, "\xFF\xFE"):
		text = fromUTF16(head[2:], 0, 1)
	case strings.HasPrefix(text, "\xFE\xFF"):
		text = fromUTF16(head[2:], 1, 0)
	default:
		// Files whose mark lost its last bytes exist, so each byte of it is optional.
		for _, b := range []byte("\xEF\xBB\xBF") {
			if text == "" || text[0] != b {
				break
			}
			text = text[1:]
		}
	}
	if len(body) > MaxSize {
		// Looked for in the decoded text: in UTF-16 a byte of a letter may equal a line's end.
		text = text[:strings.LastIndexAny(text, lineEnds)+1]
	}
	return text
}

// fromUTF16 takes the places of the low and the high byte in a pair. An odd byte is dropped.
func fromUTF16(b []byte, low, high int) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, uint16(b[low])|uint16(b[high])<<8)
	}
	return string(utf16.Decode(units))
}

// records yields all lines that have a key. Unknown keys are yielded too: what they mean is not
// the lexer's to judge.
func records(text string) iter.Seq[record] {
	return func(yield func(record) bool) {
		rest := text // text itself stays, so that the sequence can be walked again
		for number := int32(1); rest != ""; number++ {
			var line string
			line, rest = cutLine(rest)
			key, value, ok := splitLine(line)
			if ok && !yield(record{kindOf(key), key, value, number}) {
				return
			}
		}
	}
}

// cutLine ends a line at CR, LF or both. CR alone is how old editors write, and the RFC has it.
func cutLine(text string) (line, rest string) {
	i := strings.IndexAny(text, lineEnds)
	if i < 0 {
		return text, ""
	}
	if strings.HasPrefix(text[i:], lineEnds) {
		return text[:i], text[i+2:]
	}
	return text[:i], text[i+1:]
}

// splitLine finds key and value: around the first colon, or around the blank of exactly two
// words, because the colon is what people forget.
func splitLine(line string) (key, value string, ok bool) {
	// The order matters: what lies behind a NUL or a # must not supply the colon.
	line = line[:min(len(line), maxLine)]
	line, _, _ = strings.Cut(line, "\x00")
	line, _, _ = strings.Cut(line, "#")
	line = strings.Trim(line, asciiTrim)
	key, value, ok = strings.Cut(line, ":")
	if !ok {
		i := strings.IndexAny(line, blanks)
		if i < 0 {
			return "", "", false
		}
		key, value = line[:i], strings.TrimLeft(line[i:], blanks)
		if strings.ContainsAny(value, blanks) {
			return "", "", false
		}
	}
	key = strings.TrimRight(key, asciiTrim)
	return key, strings.TrimLeft(value, asciiTrim), key != ""
}

// kindOf takes the first prefix that fits. None of the prefixes is a prefix of another, so their
// order is only that of frequency.
func kindOf(key string) kind {
	for _, k := range keys {
		if len(key) >= len(k.prefix) && strings.EqualFold(key[:len(k.prefix)], k.prefix) {
			return k.kind
		}
	}
	return unknownKind
}
