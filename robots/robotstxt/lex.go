package robotstxt

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

// maxLine is how many bytes of a line count. It is the limit of Google's parser: eight times what
// browsers accept as a URL, less the NUL at the end of a C string.
const maxLine = 2083*8 - 1

const lineEnds = "\r\n"

// A kind tells what a record's key means.
type kind uint8

const (
	otherKind kind = iota
	agentKind
	allowKind
	disallowKind
	delayKind
	sitemapKind
	fileKind // another key that holds for the whole file, wherever it stands
)

// prefixKeys are compared by prefix, as Google's parser does ("Disallowed:", "allowance:"),
// together with the misspellings that it accepts because they are frequent. None is a prefix of
// another, so their order is only that of frequency.
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

// fileKeys hold for the whole file by their own specifications. Google's parser does not read them,
// so they have to be spelled out.
var fileKeys = []string{"host", "clean-param", "license"}

func kindOf(key string) kind {
	for _, k := range prefixKeys {
		if len(key) >= len(k.prefix) && strings.EqualFold(key[:len(k.prefix)], k.prefix) {
			return k.kind
		}
	}
	if slices.ContainsFunc(fileKeys, func(file string) bool { return strings.EqualFold(key, file) }) {
		return fileKind
	}
	return otherKind
}

// decode returns the part of a body that is parsed, as text without a byte order mark. It leaves
// its own result as it is, so that what File.String returns parses to the same File.
func decode(body []byte) string {
	text := string(body[:min(len(body), MaxSize)])
marks:
	for {
		switch {
		case strings.HasPrefix(text, "\xFF\xFE"):
			text = fromUTF16(text[2:], 0, 1)
		case strings.HasPrefix(text, "\xFE\xFF"):
			text = fromUTF16(text[2:], 1, 0)
		case strings.HasPrefix(text, "\xEF"):
			// Files whose UTF-8 mark lost its last bytes exist.
			text = text[1:]
			if rest, ok := strings.CutPrefix(text, "\xBB"); ok {
				text = strings.TrimPrefix(rest, "\xBF")
			}
		default:
			break marks
		}
	}
	if len(body) > MaxSize || len(text) > MaxSize {
		text = text[:min(len(text), MaxSize)]
		text = text[:strings.LastIndexAny(text, lineEnds)+1]
	}
	if len(text)+len(text)/16 < min(len(body), MaxSize) {
		text = strings.Clone(text) // or a file would keep in memory what was cut off
	}
	return text
}

// fromUTF16 takes the places of the low and the high byte in a pair. An odd byte is dropped.
func fromUTF16(s string, low, high int) string {
	units := make([]uint16, 0, len(s)/2)
	for ; len(s) >= 2; s = s[2:] {
		units = append(units, uint16(s[low])|uint16(s[high])<<8)
	}
	return string(utf16.Decode(units))
}

// A line is one that has a key, known or not.
type line struct {
	kind       kind
	key, value string
	number     uint32 // from 1
	start      uint32 // where it begins in the text
	valueStart uint32 // where its value begins
}

// lines yields the lines of text[from:to] that have a key. A line ends at CR, LF or both. Each of
// the two is searched for separately, which is fast, and once, which keeps it linear where a text
// has only one of them.
func lines(text string, from, to, number uint32) iter.Seq[line] {
	return func(yield func(line) bool) {
		text := text[:to]
		nextLF, nextCR := -1, -1
		for at := int(from); at < len(text); {
			nextLF = nextByte(text, '\n', nextLF, at)
			nextCR = nextByte(text, '\r', nextCR, at)
			end := min(nextLF, nextCR)
			number++
			key, value, valueAt := splitLine(text[at:end])
			if key != "" {
				l := line{kindOf(key), key, value, number, uint32(at), uint32(at + valueAt)}
				if !yield(l) {
					return
				}
			}
			if at = end + 1; nextLF == at { // the second half of CR LF
				at++
			}
		}
	}
}

// nextByte returns the first place from at on where c is, or else the end of the text. What was
// found last is not searched for again until it is passed.
func nextByte(text string, c byte, last, at int) int {
	if last >= at {
		return last
	}
	if i := strings.IndexByte(text[at:], c); i >= 0 {
		return at + i
	}
	return len(text)
}

// splitLine finds key and value, and where the value begins: around the first colon, or around the
// blank between exactly two words, because the colon is what people forget. A key is never empty
// but where there is none.
func splitLine(s string) (key, value string, valueAt int) {
	// The order matters: what lies behind a NUL or a # must not supply the colon.
	s = s[:min(len(s), maxLine)]
	s = trimRight(upTo(upTo(s, 0), '#'))
	end := len(s)
	s = trimLeft(s)
	colon := strings.IndexByte(s, ':')
	if colon >= 0 {
		key, value = trimRight(s[:colon]), trimLeft(s[colon+1:])
	} else {
		blank := strings.IndexAny(s, " \t")
		if blank < 0 {
			return "", "", 0
		}
		key, value = s[:blank], strings.TrimLeft(s[blank:], " \t")
		if strings.ContainsAny(value, " \t") {
			return "", "", 0
		}
	}
	return key, value, end - len(value)
}

// upTo returns what stands before the first c.
func upTo(s string, c byte) string {
	if i := strings.IndexByte(s, c); i >= 0 {
		return s[:i]
	}
	return s
}

// trimLeft and trimRight know their cut set. Those of strings build it anew for each call, which
// was a fifth of the time of a parser.
func trimLeft(s string) string {
	for s != "" && rep.IsBlank(s[0]) {
		s = s[1:]
	}
	return s
}

func trimRight(s string) string {
	for s != "" && rep.IsBlank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}
