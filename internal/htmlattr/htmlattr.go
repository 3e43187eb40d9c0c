// Package htmlattr reads the values of attributes of HTML that contain URLs and more: lists of images, and
// refreshes. Each function takes time in proportion to what it reads, and allocates nothing.
package htmlattr

import "strings"

// Whitespace is what the HTML standard calls ASCII whitespace, which has no vertical tab.
const Whitespace = " \t\n\f\r"

// text is how callers hold values.
type text interface{ ~string | ~[]byte }

// CutImage cuts the first image off the value of a srcset attribute, as the HTML standard parses that,
// without looking into its descriptors. URLs may contain commas, but not at their ends. ref is empty at
// the end of the list.
func CutImage[T text](list T) (ref, descriptors, rest T) {
	list = trimLeft(list, Whitespace+",")
	end := 0
	for end < len(list) && strings.IndexByte(Whitespace, list[end]) < 0 {
		end++
	}
	ref, rest = list[:end], list[end:]
	bare := end
	for bare > 0 && ref[bare-1] == ',' {
		bare--
	}
	if bare < end {
		return ref[:bare], rest[:0], rest
	}
	n := descriptorLen(rest)
	return ref, rest[:n], rest[n:]
}

// descriptorLen returns the length of the descriptors at the start of a list: up to a comma outside
// parentheses.
func descriptorLen[T text](list T) int {
	inside := false
	for i := range len(list) {
		switch c := list[i]; {
		case c == '(':
			inside = true
		case c == ')':
			inside = false
		case c == ',' && !inside:
			return i
		}
	}
	return len(list)
}

// CutRefresh cuts the content of a meta element with http-equiv=refresh, or a header field Refresh, into the
// seconds to wait and the URL, by the shared declarative refresh steps of the HTML standard. ref is empty if
// the page reloads itself, and wait if the seconds are a fraction of one. It is not ok if nothing happens.
func CutRefresh[T text](content T) (wait, ref T, ok bool) {
	s := trimLeft(content, Whitespace)
	rest := trimLeft(s, "0123456789")
	wait = s[:len(s)-len(rest)]
	if len(wait) == 0 && (len(s) == 0 || s[0] != '.') {
		return wait, wait, false // the time may be missing only if a fraction begins
	}
	rest = trimLeft(rest, "0123456789.")
	if len(rest) > 0 && strings.IndexByte(";,"+Whitespace, rest[0]) < 0 {
		return wait, wait[:0], false
	}
	rest = trimLeft(rest, Whitespace)
	if len(rest) > 0 && (rest[0] == ';' || rest[0] == ',') {
		rest = trimLeft(rest[1:], Whitespace)
	}
	rest = afterURLEquals(rest)
	if len(rest) > 0 && (rest[0] == '\'' || rest[0] == '"') {
		end := 1
		for end < len(rest) && rest[end] != rest[0] {
			end++
		}
		rest = rest[1:end]
	}
	for len(rest) > 0 && strings.IndexByte(Whitespace, rest[len(rest)-1]) >= 0 {
		rest = rest[:len(rest)-1]
	}
	return wait, trimLeft(rest, Whitespace), true
}

// afterURLEquals skips "url =", in any case. Without both parts, the text is a URL as it is.
func afterURLEquals[T text](s T) T {
	const name = "url"
	for i := range len(name) {
		if i == len(s) || s[i]|' ' != name[i] {
			return s
		}
	}
	rest := trimLeft(s[len(name):], Whitespace)
	if len(rest) == 0 || rest[0] != '=' {
		return s
	}
	return trimLeft(rest[1:], Whitespace)
}

// trimLeft removes leading bytes that are in a set.
func trimLeft[T text](s T, set string) T {
	for len(s) > 0 && strings.IndexByte(set, s[0]) >= 0 {
		s = s[1:]
	}
	return s
}
