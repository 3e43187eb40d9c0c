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
	blanks   = " \t"
	lineEnds = "\r\n"
)

// A kind tells what a record's key means.
type kind uint8

const (
	unknownKind kind = iota
	agentKind
	allowKind
	disallowKind
	delayKind
	rateKind
	visitKind
	signalKind
	usageKind
	// From here on they hold for the whole file, wherever they stand in it.
	sitemapKind
	hostKind
	cleanParamKind
	licenseKind

	kindBits = 4 // hold any of them
)

// ofFile reports whether records of the kind belong to no group.
func (k kind) ofFile() bool { return k >= sitemapKind }

// prefixKeys are compared by prefix, as Google's parser does ("Disallowed:", "allowance:"),
// together with the misspellings that it accepts because they are frequent.
var prefixKeys = []struct {
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

// exactKeys are those that Google's parser does not read. Whoever reads them takes them whole.
var exactKeys = map[string]kind{
	"request-rate":   rateKind,
	"visit-time":     visitKind,
	"content-signal": signalKind,
	"content-usage":  usageKind,
	"host":           hostKind,
	"clean-param":    cleanParamKind,
	"license":        licenseKind,
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
		number := int32(0)
		for line := range lines(text) {
			number++
			key, value, ok := splitLine(line)
			if ok && !yield(record{kindOf(key), key, value, number}) {
				return
			}
		}
	}
}

// lines ends a line at CR, LF or both. CR alone is how old editors write, and the RFC has it. Each
// kind of end is looked for apart, which is fast, and once, which keeps it linear where a text has
// only one of them.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		nextLF, nextCR := -1, -1
		for at := 0; at < len(text); {
			nextLF = nextByte(text, '\n', nextLF, at)
			nextCR = nextByte(text, '\r', nextCR, at)
			end := min(nextLF, nextCR)
			if !yield(text[at:end]) {
				return
			}
			if at = end + 1; nextLF == at { // the second half of CR LF
				at++
			}
		}
	}
}

// nextByte returns the first place from at on where c is, or else the end of the text. What was
// found last is not looked for again until it is passed.
func nextByte(text string, c byte, last, at int) int {
	if last >= at {
		return last
	}
	if i := strings.IndexByte(text[at:], c); i >= 0 {
		return at + i
	}
	return len(text)
}

// splitLine finds key and value: around the first colon, or around the blank of exactly two
// words, because the colon is what people forget.
func splitLine(line string) (key, value string, ok bool) {
	// The order matters: what lies behind a NUL or a # must not supply the colon.
	line = line[:min(len(line), maxLine)]
	line = upTo(upTo(line, 0), '#')
	line = trimRight(trimLeft(line))
	if colon := strings.IndexByte(line, ':'); colon >= 0 {
		key, value = line[:colon], line[colon+1:]
	} else {
		i := strings.IndexAny(line, blanks)
		if i < 0 {
			return "", "", false
		}
		key, value = line[:i], strings.TrimLeft(line[i:], blanks)
		if strings.ContainsAny(value, blanks) {
			return "", "", false
		}
	}
	key = trimRight(key)
	return key, trimLeft(value), key != ""
}

// upTo returns what stands before the first c.
func upTo(s string, c byte) string {
	if i := strings.IndexByte(s, c); i >= 0 {
		return s[:i]
	}
	return s
}

// trimLeft and trimRight know their cut set. Those of strings build it anew for each call, which
// was a fifth of the time that a parser took.
func trimLeft(s string) string {
	for s != "" && isBlank(s[0]) {
		s = s[1:]
	}
	return s
}

func trimRight(s string) string {
	for s != "" && isBlank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\f' && c != '\n' }

// kindOf takes the first prefix that fits. None of the prefixes is a prefix of another, so their
// order is only that of frequency.
func kindOf(key string) kind {
	for _, k := range prefixKeys {
		if len(key) >= len(k.prefix) && strings.EqualFold(key[:len(k.prefix)], k.prefix) {
			return k.kind
		}
	}
	return exactKeys[strings.ToLower(key)]
}
