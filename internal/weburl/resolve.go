package weburl

import (
	"bytes"
	"slices"
)

// A Resolver makes the references of one page absolute, if they resolve to http or https. It is not
// safe for concurrent use.
//
// It returns the same results as [Parse] and [URL.Append]. But nearly all references in pages are
// already in normal form, relative to some directory, and for those it only copies bytes.
type Resolver struct {
	// Encoder is the encoder of the page, for queries; nil means UTF-8. It may be set at any time.
	Encoder Encoder

	base URL
	web  bool   // the base is http or https; other schemes have rules of their own
	page []byte // base without query, fragment and credentials
	root int    // index in page of the path
	dir  int    // index in page of the last segment of the path
	last lastHost
}

// Reset sets the base of the next references.
func (r *Resolver) Reset(base URL) {
	base.Username, base.Password = "", ""
	r.base, r.web = base, IsWeb(&base)
	base.HasQuery = false
	size := len(base.Host) + len(base.Path) + len("https://:65535")
	r.page = base.Append(slices.Grow(r.page[:0], size), false)
	r.root = len(r.page) - len(base.Path)
	r.dir = bytes.LastIndexByte(r.page, '/') + 1
}

// Base returns the base URL, without credentials.
func (r *Resolver) Base() URL { return r.base }

// Append appends the URL to which ref resolves, without fragment and credentials, to dst. It
// returns dst unchanged and false if that is not a URL, or neither http nor https.
func (r *Resolver) Append(dst, ref []byte) ([]byte, bool) {
	if out, ok := r.copied(dst, ref); ok {
		return out, true
	}
	if isForeign(ref) {
		return dst, false
	}
	p := parser{base: &r.base, encoder: r.Encoder, last: &r.last}
	u, err := p.parse(string(ref))
	if err != nil || !IsWeb(&u) {
		return dst, false
	}
	u.Username, u.Password = "", ""
	return u.Append(dst, false), true
}

// IsWeb reports whether the scheme is http or https.
func IsWeb(u *URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// isForeign reports whether ref has another scheme. Parsing such a URL would be a waste, and data:
// URLs are long.
func isForeign(ref []byte) bool {
	for i, c := range ref {
		switch {
		case c == ':' && i > 0:
			return !bytes.EqualFold(ref[:i], []byte("http")) &&
				!bytes.EqualFold(ref[:i], []byte("https"))
		case isAlpha(c):
		case i > 0 && (isDigit(c) || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return false
}

// copied is the fast path of Append, for references whose bytes need not change. It returns false
// if ref needs Parse.
func (r *Resolver) copied(dst, ref []byte) ([]byte, bool) {
	head, query, ok := cutPlain(ref)
	if !ok || !r.web {
		return dst, false
	}
	out := dst
	switch {
	case len(head) == 0:
		out = append(out, r.page...)
		if query == nil && r.base.HasQuery {
			out = append(append(out, '?'), r.base.Query...)
		}
	case head[0] != '/':
		out, ok = r.relative(out, head)
	case len(head) > 1 && head[1] == '/':
		out = append(append(out, r.base.Scheme...), ':')
		out, ok = appendAbsolute(out, head)
	case hasDots(head):
		return dst, false
	default:
		out = append(append(out, r.page[:r.root]...), head...)
	}
	if !ok {
		return dst, false
	}
	return append(out, query...), true
}

// relative appends the URL of a head that does not start with a slash.
func (r *Resolver) relative(dst, head []byte) ([]byte, bool) {
	if colon := bytes.IndexByte(head, ':'); colon >= 0 {
		scheme := string(head[:colon])
		if scheme != "http" && scheme != "https" {
			return dst, false
		}
		return appendAbsolute(append(dst, head[:colon+1]...), head[colon+1:])
	}
	dir := r.dir
	for len(head) > 1 && head[0] == '.' {
		if head[1] == '/' {
			head = head[len("./"):]
			continue
		}
		if !bytes.HasPrefix(head, []byte("../")) {
			break
		}
		head = head[len("../"):]
		// The root is its own parent.
		if dir > r.root+1 {
			dir = bytes.LastIndexByte(r.page[:dir-1], '/') + 1
		}
	}
	if len(head) > 0 && head[0] == '/' || hasDots(head) {
		return dst, false
	}
	return append(append(dst, r.page[:dir]...), head...), true
}

// appendAbsolute appends "//", a host and perhaps a path.
func appendAbsolute(dst, rest []byte) ([]byte, bool) {
	if len(rest) < len("//h") || rest[0] != '/' || rest[1] != '/' {
		return dst, false
	}
	end, label := 2, 2 // end of the host, and start of its last label
	for ; end < len(rest) && rest[end] != '/'; end++ {
		// Colons and characters that need mapping are in this class.
		if classOf[rest[end]]&inDomain != 0 {
			return dst, false
		}
		if rest[end] == '.' && end+1 < len(rest) && rest[end+1] != '/' {
			label = end + 1
		}
	}
	// A host whose last label starts with a digit may be an address, in one of many forms.
	if end == 2 || isDigit(rest[label]) || hasDots(rest[end:]) {
		return dst, false
	}
	dst = append(dst, rest...)
	if end == len(rest) {
		dst = append(dst, '/')
	}
	return dst, true
}

// cutPlain cuts ref into the part before the query and the query with its question mark; the
// fragment is dropped. It returns false if a byte before the fragment must be encoded.
func cutPlain(ref []byte) (head, query []byte, ok bool) {
	i := 0
	for i < len(ref) && classOf[ref[i]]&(inPath|isBackslash) == 0 {
		i++
	}
	head = ref[:i]
	if i < len(ref) && ref[i] == '?' {
		for i < len(ref) && classOf[ref[i]]&inSpecialQuery == 0 {
			i++
		}
		query = ref[len(head):i]
	}
	return head, query, i == len(ref) || ref[i] == '#'
}

// hasDots reports whether a segment of path starts like a dot segment. Few others do.
func hasDots(path []byte) bool {
	start := true
	for _, c := range path {
		set := classOf[c]
		if start && set&startsDot != 0 {
			return true
		}
		start = set&isSlash != 0
	}
	return false
}
