package weburl

import "strings"

// A path is stored in its serialized form, with a slash before each segment, instead of as a list.
// No information is lost: the list of no segments is "", the list of one empty segment is "/", and
// no segment contains a slash.

// setPathAfterHost sets the path from the text after a host, which is empty or starts with a slash.
// It implements the path start state. A special URL always has a path; others need none.
func (p *parser) setPathAfterHost(in string) {
	switch {
	case p.isNormalPath(in):
		p.url.Path = in
	case in != "":
		p.setPath("", in[len("/"):])
	case p.special:
		p.url.Path = "/"
	}
}

// isNormalPath reports whether setPath would not change in, so that nothing has to be copied. Most
// paths in pages are normal. File URLs, with their drive letters, are not worth the effort.
func (p *parser) isNormalPath(in string) bool {
	stop := inPath
	if p.special {
		stop |= isBackslash
	}
	return in != "" && p.url.Scheme != "file" && !has(in, stop) && !hasDotSegment(in)
}

// setPath sets the path to prefix and the segments of in, without the dot segments. It implements
// the path state. Each byte of in is read once, and each byte of path is removed at most once, so
// the time is linear for any number of dots.
func (p *parser) setPath(prefix, in string) {
	file := p.url.Scheme == "file"
	path := append(make([]byte, 0, len(prefix)+len(in)+len("/")), prefix...)
	for more := true; more; {
		var segment string
		segment, in = p.cutAtSlash(in)
		if more = in != ""; more {
			in = in[len("/"):]
		}
		switch dots := countDots(segment); {
		case dots > 0:
			if dots == 2 {
				path = path[:len(parent(path, file))]
			}
			if !more {
				path = append(path, '/') // "a/.." is a directory
			}
		case file && len(path) == 0 && isDrive(segment):
			path = append(path, '/', segment[0], ':')
		default:
			path = appendEncoded(append(path, '/'), segment, inPath)
		}
	}
	p.url.Path = string(path)
}

// setOpaque sets a path that is not hierarchical. It implements the opaque path state. Spaces are
// kept, for the scripts in javascript: URLs. But a space at the end must be encoded: a query or a
// fragment follows it, and without those it would be trimmed.
func (p *parser) setOpaque(in string) {
	p.url.Opaque = true
	if strings.HasSuffix(in, " ") {
		p.url.Path = encode(in[:len(in)-1], inControl) + "%20"
		return
	}
	p.url.Path = encode(in, inControl)
}

// parent returns path without its last segment ("shorten" in the standard). It keeps the drive
// letter of a file URL.
func parent[P string | []byte](path P, file bool) P {
	if file && len(path) == len("/C:") && drive(string(path)) != "" {
		return path
	}
	end := len(path) - 1
	for end > 0 && path[end] != '/' {
		end--
	}
	return path[:max(end, 0)]
}

// countDots returns 1 for ".", 2 for "..", and 0 for all other segments. Percent-encoded dots count
// as well: otherwise "%2e%2e" would reach a server that decodes before it looks for dots.
func countDots(segment string) int {
	dots := 0
	for ; segment != "" && dots <= 2; dots++ {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) >= 3 && segment[0] == '%' && segment[1] == '2' && segment[2]|0x20 == 'e':
			segment = segment[3:]
		default:
			return 0
		}
	}
	if dots > 2 {
		return 0
	}
	return dots
}

// isDrive reports whether s is a Windows drive letter: "C:", or "C|" from the time when a colon was
// not allowed there.
func isDrive(s string) bool {
	return len(s) == 2 && isAlpha(s[0]) && (s[1] == ':' || s[1] == '|')
}

// startsWithDrive reports whether the first segment of head is a drive letter. File URLs are
// special, so a backslash ends a segment.
func startsWithDrive(head string) bool {
	return len(head) >= 2 && isDrive(head[:2]) &&
		(len(head) == 2 || head[2] == '/' || head[2] == '\\')
}

// drive returns the drive letter that a normal path starts with, as "/C:", or "".
func drive(path string) string {
	const size = len("/C:")
	if len(path) >= size && path[0] == '/' && isAlpha(path[1]) && path[2] == ':' &&
		(len(path) == size || path[size] == '/') {
		return path[:size]
	}
	return ""
}
