package archivefs

import (
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// The names of files in an [FS] are parts of URLs. Only bytes that are invalid in a name are
// escaped, so that each name maps to exactly one URL.
const (
	// indexPage is the name of a page whose URL ends in a slash, which no file name can. Static
	// file servers look for it.
	indexPage = "index.html"

	// escapeMark and two hexadecimal digits are an escaped byte. The percent sign already has a
	// meaning in URLs; "#" starts the fragment, so no path or query contains it.
	escapeMark = '#'

	// emptyName is the name of an empty segment, as in "//", which a file system would drop. It is
	// not a valid escape.
	emptyName = string(escapeMark)
)

const upperHex = "0123456789ABCDEF"

// escapeName converts a part of a URL to a file name.
func escapeName(part string) string {
	switch part {
	case "":
		return emptyName
	case ".", "..": // special in paths
		return strings.ReplaceAll(part, ".", "#2E")
	}
	plain := true
	for i := 0; i < len(part) && plain; i++ {
		plain = part[i] < utf8.RuneSelf && !needsEscape(part[i])
	}
	if plain {
		return part
	}
	b := make([]byte, 0, len(part)+len(part)/2)
	for i := 0; i < len(part); {
		r, size := utf8.DecodeRuneInString(part[i:])
		if r == utf8.RuneError && size == 1 || size == 1 && needsEscape(part[i]) {
			b = append(b, escapeMark, upperHex[part[i]>>4], upperHex[part[i]&15])
		} else {
			b = append(b, part[i:i+size]...)
		}
		i += size
	}
	return string(b)
}

// needsEscape reports whether a byte is a control character, a separator in URLs or in the paths of
// some system, or the mark itself.
func needsEscape(c byte) bool {
	return c < ' ' || c == 0x7f || c == '/' || c == '?' || c == '\\' || c == escapeMark
}

// unescapeName is the inverse of escapeName. It rejects names that escapeName never returns, so
// that each file has only one name.
func unescapeName(name string) (part string, ok bool) {
	if name == emptyName {
		return "", true
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != escapeMark {
			b = append(b, name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		high := strings.IndexByte(upperHex, name[i+1])
		low := strings.IndexByte(upperHex, name[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b = append(b, byte(high<<4|low))
		i += 2
	}
	part = string(b)
	return part, escapeName(part) == name
}

// dirName returns the name of a directory. A directory named index.html, which is rare, is escaped:
// otherwise the page of its parent would need a third name.
func dirName(part string) string {
	if part == indexPage {
		return "#69ndex.html"
	}
	return escapeName(part)
}

// cutDirName is the inverse of dirName.
func cutDirName(name string) (part string, ok bool) {
	if name == dirName(indexPage) {
		return indexPage, true
	}
	part, ok = unescapeName(name)
	return part, ok && part != indexPage && !strings.ContainsAny(part, "/?")
}

// pageName returns the name of a page from the last segment of its path, with the query. A mark is
// appended if the plain name is taken by a directory or by the index page of the same directory.
func pageName(part string, taken bool) string {
	if part == "" {
		return indexPage
	}
	name := escapeName(part)
	if taken {
		name += string(escapeMark)
	}
	return name
}

// cutPageName is the inverse of pageName, except for index pages.
func cutPageName(name string) (part string, taken, ok bool) {
	name, taken = strings.CutSuffix(name, string(escapeMark))
	part, ok = unescapeName(name)
	path, _, _ := strings.Cut(part, "?")
	return part, taken, ok && part != "" && !strings.Contains(path, "/")
}

// hostName returns the name of the directory of a host from its authority in a SURT.
func hostName(authority string) string {
	host, port := urlkey.CutPort(authority)
	b := urlkey.AppendHost(make([]byte, 0, len(authority)), host, ",", ".")
	return escapeName(string(append(b, port...)))
}

// cutHostName is the inverse of hostName.
func cutHostName(name string) (authority string, ok bool) {
	part, ok := unescapeName(name)
	host, port := urlkey.CutPort(part)
	b := urlkey.AppendHost(make([]byte, 0, len(part)), host, ".", ",")
	authority = string(append(b, port...))
	return authority, ok && hostName(authority) == name
}
