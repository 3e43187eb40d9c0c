package page

import (
	"bytes"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/htmlattr"
)

const whitespace = htmlattr.Whitespace

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

// srcsetURLs iterates over the URLs of a srcset attribute.
func srcsetURLs(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for url, _, rest := htmlattr.CutImage(list); len(url) > 0; url, _, rest = htmlattr.CutImage(rest) {
			if !yield(url) {
				return
			}
		}
	}
}

// refreshURL returns the URL in the content of a meta refresh; nil if it has none, which means the page itself.
func refreshURL(content []byte) []byte {
	_, url, ok := htmlattr.CutRefresh(content)
	if !ok {
		return nil
	}
	return url
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
