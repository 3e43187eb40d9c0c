package weburl

import whatwg "github.com/spinneret-go/spinneret/internal/weburl"

// A URL is a parsed URL of any scheme, in the normal form of the URL Standard: parsing its String
// returns the same URL. Its methods are safe for concurrent use.
type URL struct {
	Scheme      string // lowercase, without the colon
	Username    string // percent-encoded
	Password    string // percent-encoded
	Host        string // "example.com", "127.0.0.1", "[::1]"; "" in file:///etc
	Port        string // decimal; "" if absent or the default of the scheme
	Path        string // percent-encoded; begins with a slash unless empty or Opaque
	Query       string // percent-encoded, without the question mark
	Fragment    string // percent-encoded, without the number sign
	HasHost     bool   // distinguishes file:///etc from mailto:a@b.test
	HasQuery    bool   // distinguishes "/?" from "/"
	HasFragment bool   // distinguishes "/#" from "/"
	Opaque      bool   // Path is not hierarchical, as in mailto:a@b.test
}

// Parse parses rawURL, which may be relative if base is not nil. It reads base and does not keep
// it. All errors wrap [ErrInvalid]. A URL in normal form is cut into substrings of rawURL without
// an allocation.
func Parse(rawURL string, base *URL) (URL, error) {
	u, err := parse(rawURL, (*whatwg.URL)(base))
	return URL(u), err
}

// String returns the URL with its fragment and credentials.
func (u *URL) String() string { return (*whatwg.URL)(u).String() }
