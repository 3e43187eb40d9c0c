package weburl

import "errors"

// The kinds of failure. A [ParseError] unwraps to one of them.
var (
	ErrNoBase = errors.New("weburl: relative URL without a base")
	ErrHost   = errors.New("weburl: bad host")
	ErrPort   = errors.New("weburl: bad port")
)

// A ParseError says why a string is not a URL. It does not repeat the string, which may be long.
type ParseError struct {
	Kind   error  // ErrNoBase, ErrHost or ErrPort
	Reason string // a few words, without the input
}

// Error returns the kind and the reason.
func (e ParseError) Error() string { return e.Kind.Error() + ": " + e.Reason }

// Unwrap returns the kind.
func (e ParseError) Unwrap() error { return e.Kind }

// A URL is a parsed URL in normal form. Its methods are safe for concurrent use.
type URL struct {
	Scheme      string // lower case, without the colon
	Username    string // percent-encoded
	Password    string // percent-encoded
	Host        string // "example.com", "127.0.0.1", "[::1]"; "" in file:///etc
	Port        string // decimal; "" if absent or the scheme's default
	Path        string // percent-encoded; begins with a slash unless empty or Opaque
	Query       string // percent-encoded, without the question mark
	Fragment    string // percent-encoded, without the number sign
	HasHost     bool   // distinguishes file:///etc from mailto:a@b.test
	HasQuery    bool   // distinguishes "/?" from "/"
	HasFragment bool   // distinguishes "/#" from "/"
	Opaque      bool   // Path is not hierarchical, as in mailto:a@b.test
}

// Special reports whether the scheme is a special one: http, https, ws, wss, ftp, file.
func (u *URL) Special() bool { return isSpecial(u.Scheme) }

// String returns the URL with its fragment.
func (u *URL) String() string { return string(u.Append(make([]byte, 0, 128), true)) }

// Append appends the URL to dst, with the fragment if fragment is true, and returns the extended
// slice. It allocates only if dst is too short. Requests and keys have no fragment.
func (u *URL) Append(dst []byte, fragment bool) []byte {
	dst = append(append(dst, u.Scheme...), ':')
	switch {
	case u.HasHost:
		dst = u.appendAuthority(append(dst, "//"...))
	case !u.Opaque && len(u.Path) > 1 && u.Path[1] == '/':
		// Without the dot, the path's two slashes would start a host.
		dst = append(dst, "/."...)
	}
	dst = append(dst, u.Path...)
	if u.HasQuery {
		dst = append(append(dst, '?'), u.Query...)
	}
	if fragment && u.HasFragment {
		dst = append(append(dst, '#'), u.Fragment...)
	}
	return dst
}

// appendAuthority appends the part between "//" and the path.
func (u *URL) appendAuthority(dst []byte) []byte {
	if u.Username != "" || u.Password != "" {
		dst = append(dst, u.Username...)
		if u.Password != "" {
			dst = append(append(dst, ':'), u.Password...)
		}
		dst = append(dst, '@')
	}
	dst = append(dst, u.Host...)
	if u.Port != "" {
		dst = append(append(dst, ':'), u.Port...)
	}
	return dst
}

func isSpecial(scheme string) bool {
	switch scheme {
	case "http", "https", "ws", "wss", "ftp", "file":
		return true
	}
	return false
}

// defaultPort returns the port that a special scheme implies, and "" for all others: file is
// special, but has none.
func defaultPort(scheme string) string {
	switch scheme {
	case "http", "ws":
		return "80"
	case "https", "wss":
		return "443"
	case "ftp":
		return "21"
	}
	return ""
}
