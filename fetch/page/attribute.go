package page

import (
	"bytes"
	"iter"
	"strings"
	"unicode/utf8"
)

// whitespace is ASCII whitespace as the HTML standard defines it: without the vertical tab.
const whitespace = " \t\n\f\r"

func isSpace(c byte) bool { return marks[c]&isBlank != 0 }

func trimmed(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// equalFold reports whether b, trimmed, is the lower-case ASCII word.
func equalFold(b []byte, word string) bool {
	b = trimmed(b)
	return len(b) == len(word) && strings.EqualFold(string(b), word)
}

// lowered returns b trimmed and in lower case. It does not allocate for the usual values.
func (w *walker) lowered(b []byte) string {
	b = trimmed(b)
	switch string(b) {
	case "":
		return ""
	case "nofollow":
		return "nofollow"
	case "noopener":
		return "noopener"
	case "stylesheet":
		return "stylesheet"
	case "robots":
		return "robots"
	case "text/css":
		return "text/css"
	}
	for _, c := range b {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return strings.ToLower(string(b))
		}
	}
	return w.strings.add(b)
}

// hasToken reports whether list, in lower case, names the token between white space.
func hasToken(list, token string) bool {
	// Most links have no rel, and most of the rest a single word.
	if len(list) < len(token) || list == token {
		return list == token
	}
	for field := range strings.FieldsSeq(list) {
		if field == token {
			return true
		}
	}
	return false
}

// relKind returns the purpose of a link element, by its rel in lower case; 0 if it is not a link,
// or only names a host to connect to. Of several words the one listed first here decides, since
// their order in rel has no meaning.
func relKind(rel string) Kind {
	switch {
	case hasToken(rel, "stylesheet"): // also "alternate stylesheet"
		return Resource
	case hasToken(rel, "canonical"):
		return Canonical
	case hasToken(rel, "next"):
		return Next
	case hasToken(rel, "prev"), hasToken(rel, "previous"):
		return Prev
	case hasToken(rel, "alternate"):
		return Alternate
	}
	for _, word := range []string{"icon", "apple-touch-icon", "apple-touch-icon-precomposed",
		"mask-icon", "manifest", "preload", "modulepreload", "prefetch"} {
		if hasToken(rel, word) {
			return Resource
		}
	}
	if rel == "" || hasToken(rel, "dns-prefetch") || hasToken(rel, "preconnect") {
		return 0
	}
	return Related
}

// isDirective reports whether some part of content is a directive for crawlers. It distinguishes
// <meta name=examplebot content=noindex> from <meta name=author content=...>.
func isDirective(content []byte) bool {
	// One word is enough: crawlers skip unknown words, so pages may have some.
	for part := range bytes.SplitSeq(content, []byte(",")) {
		word, _, _ := bytes.Cut(part, []byte(":"))
		var lower [maxDirective]byte
		switch string(appendLower(lower[:0], trimmed(word))) {
		case "all", "index", "follow", "none", "noindex", "nofollow", "noarchive", "nocache",
			"nosnippet", "noimageindex", "notranslate", "noodp", "noydir", "unavailable_after",
			"max-snippet", "max-image-preview", "max-video-preview", "indexifembedded",
			"noai", "noimageai":
			return true
		}
	}
	return false
}

// maxDirective is longer than any directive. Longer contents, such as descriptions, are not
// examined.
const maxDirective = 20

// srcsetURLs iterates over the URLs of a srcset attribute, by the HTML standard's "parse a srcset
// attribute" without the processing of descriptors.
func srcsetURLs(s []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			s = bytes.TrimLeft(s, whitespace+",")
			if len(s) == 0 {
				return
			}
			end := bytes.IndexAny(s, whitespace)
			if end < 0 {
				end = len(s)
			}
			url := s[:end]
			s = s[end:]
			// A comma belongs to the URL unless it ends it; then there are no descriptors.
			if bare := bytes.TrimRight(url, ","); len(bare) < len(url) {
				url = bare
			} else {
				s = s[descriptors(s):]
			}
			if !yield(url) {
				return
			}
		}
	}
}

// descriptors returns the length of the descriptors at the start of s: up to a comma that is not in
// parentheses.
func descriptors(s []byte) int {
	inside := false
	for i, c := range s {
		switch {
		case c == '(':
			inside = true
		case c == ')':
			inside = false
		case c == ',' && !inside:
			return i
		}
	}
	return len(s)
}

// refreshURL returns the URL in the content of a meta refresh, by the HTML standard's "shared
// declarative refresh steps"; nil if it has none, which means the page itself.
func refreshURL(s []byte) []byte {
	s = bytes.TrimLeft(s, whitespace)
	rest := bytes.TrimLeft(s, "0123456789")
	// The time may be missing only if a fraction begins.
	if len(rest) == len(s) && (len(s) == 0 || s[0] != '.') {
		return nil
	}
	rest = bytes.TrimLeft(rest, "0123456789.")
	if len(rest) == 0 || rest[0] != ';' && rest[0] != ',' && !isSpace(rest[0]) {
		return nil
	}
	rest = bytes.TrimLeft(rest, whitespace)
	if len(rest) > 0 && (rest[0] == ';' || rest[0] == ',') {
		rest = bytes.TrimLeft(rest[1:], whitespace)
	}
	// The quote may follow "url=" or replace it.
	rest = afterURLEquals(rest)
	if len(rest) > 0 && (rest[0] == '\'' || rest[0] == '"') {
		quote := rest[0]
		rest = rest[1:]
		if end := bytes.IndexByte(rest, quote); end >= 0 {
			rest = rest[:end]
		}
	}
	return trimmed(rest)
}

// afterURLEquals skips "url =", in any case. Without both parts, the text is a URL as it is.
func afterURLEquals(s []byte) []byte {
	if len(s) < 3 || !equalFold(s[:3], "url") {
		return s
	}
	rest := bytes.TrimLeft(s[3:], whitespace)
	if len(rest) == 0 || rest[0] != '=' {
		return s
	}
	return bytes.TrimLeft(rest[1:], whitespace)
}

// appendFragment appends the decoded fragment of a URL. A directive for the browser in it, such as
// words to highlight, names no place. It requires that dst is empty.
func appendFragment(dst, url []byte) []byte {
	_, fragment, _ := bytes.Cut(url, []byte("#"))
	fragment, _, _ = bytes.Cut(fragment, []byte(":~:"))
	for i := 0; i < len(fragment); i++ {
		c := fragment[i]
		switch {
		case c == '\t' || c == '\n' || c == '\r': // no part of a URL
			continue
		case c == '%' && i+2 < len(fragment) && hexValue(fragment[i+1]) >= 0 && hexValue(fragment[i+2]) >= 0:
			c = byte(hexValue(fragment[i+1])<<4 | hexValue(fragment[i+2]))
			i += 2
		}
		dst = append(dst, c)
	}
	if !utf8.Valid(dst) {
		return bytes.ToValidUTF8(dst, []byte("\uFFFD"))
	}
	return dst
}
