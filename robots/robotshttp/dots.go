package robotshttp

import (
	"iter"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// match returns the verdict on a URL, and on what a server may make of that: net/http sends dot
// segments as they are, and each server resolves them in its own way. The strictest verdict counts.
func match(rules robotstxt.Rules, page string) robotstxt.Verdict {
	verdict := rules.Match(page)
	if verdict.Allowed {
		for resolved := range readings(page) {
			if verdict := rules.Match(resolved); !verdict.Allowed {
				return verdict
			}
		}
	}
	return verdict
}

// decoders say what separates segments: a slash; that or an escaped one, for servers that decode first; that
// or a backslash, as for browsers and for servers on Windows; or any of them. An escaped dot is a dot for all
// (RFC 3986, 6.2.2.2), and net/http sends a backslash escaped.
var decoders = [...]*strings.Replacer{
	strings.NewReplacer("%2e", ".", "%2E", "."),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", `\`, "/", "%5c", "/", "%5C", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", `\`, "/", "%5c", "/", "%5C", "/"),
}

// readings yields a URL as servers read it if its path has dot segments. They differ in what separates
// segments, whether they merge slashes: not at all (RFC 3986, 5.2.4), before they resolve the dot
// segments, as nginx does, or after that, as Apache does; and whether they drop the parameters of segments
// before, as servlet containers do: of those that they find first, or that there are once the path is
// decoded.
func readings(page string) iter.Seq[string] {
	return func(yield func(string) bool) {
		path, query, start := page, "", strings.Index(page, "://")+len("://")
		if i := strings.IndexByte(page, '?'); i >= 0 {
			path, query = page[:i], page[i:]
		}
		host := strings.IndexByte(path[min(start, len(path)):], '/')
		if host < 0 {
			return
		}
		origin, path := path[:start+host], path[start+host:]
		if !isDotted(path) {
			return
		}
		bare := withoutParams(path, false)
		var yielded []string // most readings of most paths are the same, and a check may take long
		for _, decoder := range decoders {
			decoded := decoder.Replace(path)
			for _, decoded := range []string{
				decoded, withoutParams(decoded, true), withoutParams(decoded, false), decoder.Replace(bare),
			} {
				resolved := withoutDots(decoded)
				for _, reading := range []string{resolved, merged(resolved), withoutDots(merged(decoded))} {
					if slices.Contains(yielded, reading) {
						continue
					}
					yielded = append(yielded, reading)
					if !yield(origin + reading + query) {
						return
					}
				}
			}
		}
	}
}

// maxDotted bounds the length of a URL whose path has dot segments. It is checked up to 48 times, which takes
// a second at this length with the worst robots.txt, and all readings are kept meanwhile; net/http follows
// redirects to URLs of 10 MB.
const maxDotted = 1 << 10

// isTooLong reports whether a URL is longer than that, and has dot segments.
func isTooLong(page string) bool {
	if len(page) <= maxDotted {
		return false
	}
	path, _, _ := strings.Cut(page, "?")
	return isDotted(path)
}

// isDotted reports whether a path has dot segments for any server: one or two dots between separators, or
// between one and a parameter. It takes no memory, as the path may have megabytes.
func isDotted(path string) bool {
	dots := -1 // in the segment so far, if it has nothing else
	for path != "" {
		var c byte
		switch c, path = cutByte(path); {
		case c != '/' && c != ';' && (c != '.' || dots < 0):
			dots = -1
		case c == '.':
			dots++
		case dots == 1 || dots == 2:
			return true
		case c == '/':
			dots = 0
		default:
			dots = -1
		}
	}
	return dots == 1 || dots == 2
}

// cutByte cuts off the first byte, decoded if that may be of a dot segment. A backslash separates as well.
func cutByte(path string) (first byte, rest string) {
	switch path[:min(3, len(path))] {
	case "%2e", "%2E":
		return '.', path[3:]
	case "%2f", "%2F", "%5c", "%5C":
		return '/', path[3:]
	case "%3b", "%3B":
		return ';', path[3:]
	}
	if path[0] == '\\' {
		return '/', path[1:]
	}
	return path[0], path[1:]
}

// withoutParams drops what follows a semicolon in each segment (RFC 3986, 3.3), or only in dot segments.
func withoutParams(path string, ofDots bool) string {
	if !strings.Contains(path, ";") && !strings.Contains(path, "%3") {
		return path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		name, _, _ := strings.Cut(semicolons.Replace(segment), ";")
		if !ofDots || name == "." || name == ".." {
			segments[i] = name
		}
	}
	return strings.Join(segments, "/")
}

var semicolons = strings.NewReplacer("%3b", ";", "%3B", ";")

// withoutDots resolves the dot segments of a path, which begins with a slash.
func withoutDots(path string) string {
	segments := strings.Split(path[1:], "/")
	kept := make([]string, 0, len(segments))
	for i, segment := range segments {
		switch {
		case segment != "." && segment != "..":
			kept = append(kept, segment)
			continue
		case segment == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		}
		if i == len(segments)-1 {
			kept = append(kept, "") // it names a directory
		}
	}
	return "/" + strings.Join(kept, "/")
}

// merged replaces each run of slashes by one.
func merged(path string) string {
	for strings.Contains(path, "//") { // each round halves the runs
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
