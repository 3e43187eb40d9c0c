package weburl

import (
	"strings"

	whatwg "github.com/spinneret-go/spinneret/internal/weburl"
)

// Steps are changes to a URL after which it usually, but not necessarily, has the same page. The
// zero Steps changes nothing. Steps are applied in the order of the fields. Canonicalization is
// idempotent for every choice of steps.
//
// Query parameters are separated by "&"; the name ends at the first "=". Names are compared as
// written, ignoring ASCII case. If the last parameter is dropped, so is the question mark.
type Steps struct {
	// NormalizeEscapes makes equivalent percent-encodings equal (RFC 3986, section 6.2.2): the
	// hexadecimal digits become uppercase, and letters, digits and "-._~" are decoded. So %c3
	// becomes %C3, and %7E becomes ~. A percent sign that does not start an escape is unchanged.
	NormalizeEscapes bool

	// DropTracking drops the parameters that advertisers and mailing services add to track where a
	// visitor came from, such as utm_source, gclid, fbclid and msclkid.
	DropTracking bool

	// DropRootDot drops a dot at the end of the host, which stands for the root of the DNS. Browsers keep
	// it, but both names lead to the same server.
	DropRootDot bool

	// DropSessions drops session ids: parameters that are always session ids (PHPSESSID,
	// jsessionid, …), parameters that sometimes are (sid, …) if the value looks random, and in the
	// path ";jsessionid=…" and ASP.NET's "(S(…))".
	DropSessions bool
}

// apply requires an http or https URL.
func (s Steps) apply(u *whatwg.URL) {
	if s.NormalizeEscapes {
		u.Path, u.Query = normalizeEscapes(u.Path), normalizeEscapes(u.Query)
	}
	if u.Query != "" && (s.DropTracking || s.DropSessions) {
		u.Query, u.HasQuery = s.keptParams(u.Query)
	}
	if s.DropSessions {
		u.Path = withoutSessions(u.Path)
	}
	if host := strings.TrimSuffix(u.Host, "."); s.DropRootDot && host != "" && !strings.HasSuffix(host, ".") {
		u.Host = host // the others are no names
	}
}

// keptParams returns a query without the dropped parameters, and whether any is left. It returns
// the query itself if nothing is dropped.
func (s Steps) keptParams(query string) (kept string, some bool) {
	dropped := 0
	for param := range strings.SplitSeq(query, "&") {
		if s.drops(param) {
			dropped++
		}
	}
	if dropped == 0 {
		return query, true
	}
	var b strings.Builder
	for param := range strings.SplitSeq(query, "&") {
		if s.drops(param) {
			continue
		}
		if some {
			b.WriteByte('&')
		}
		b.WriteString(param)
		some = true
	}
	return b.String(), some
}

func (s Steps) drops(param string) bool {
	name, value, _ := strings.Cut(param, "=")
	return s.DropTracking && isTracking(name) || s.DropSessions && isSession(name, value)
}

// withoutSessions drops session ids from a path. The rest of a segment must not become a dot
// segment, which the next parser would resolve; such segments are unchanged.
func withoutSessions(path string) string {
	if strings.IndexByte(path, ';') < 0 && strings.IndexByte(path, '(') < 0 {
		return path
	}
	var b strings.Builder
	dropped := false // the last segment
	for segment := range strings.SplitSeq(path[1:], "/") {
		// First the parameters: without them, the rest may be an id of ASP.NET.
		segment = withoutParams(segment)
		if dropped = isASPSession(segment); !dropped {
			b.WriteByte('/')
			b.WriteString(segment)
		}
	}
	if dropped {
		b.WriteByte('/')
	}
	return b.String()
}

// withoutParams returns a segment without ";jsessionid=…", up to the next semicolon.
func withoutParams(segment string) string {
	file, params, found := strings.Cut(segment, ";")
	if !found || isDots(file) {
		return segment
	}
	var b strings.Builder
	b.WriteString(file)
	for param := range strings.SplitSeq(params, ";") {
		name, _, found := strings.Cut(param, "=")
		if !found || !strings.EqualFold(name, "jsessionid") {
			b.WriteByte(';')
			b.WriteString(param)
		}
	}
	return b.String()
}

// isDots reports whether a segment is a dot segment.
func isDots(segment string) bool {
	plain := strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".")
	return plain == "." || plain == ".."
}

// isASPSession reports whether a segment is a session id that ASP.NET puts into paths instead of a
// cookie: letters, each with 24 characters in parentheses, as in (S(lit3py55t21z5v55vlm25s55)) or
// (A(…)F(…)).
func isASPSession(segment string) bool {
	rest, found := strings.CutPrefix(segment, "(")
	if !found {
		return false
	}
	rest, found = strings.CutSuffix(rest, ")")
	if !found || rest == "" {
		return false
	}
	for rest != "" {
		if !isUpper(rest[0]) || !strings.HasPrefix(rest[1:], "(") {
			return false
		}
		id, after, found := strings.Cut(rest[2:], ")")
		if !found || len(id) < minSessionID {
			return false
		}
		rest = after
	}
	return true
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
