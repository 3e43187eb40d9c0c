package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

var errLong = errors.New("longer than MaxURL")

// schemeError has the words of net/http, by which some clients know that a retry is no use.
func schemeError(scheme string) error {
	return fmt.Errorf("unsupported protocol scheme %q", scheme)
}

// target returns raw without fragment and credentials, in the form that net/http needs, or says why
// it cannot be requested.
func (c *Client) target(raw string) (page string, wire *url.URL, failure *Error) {
	u, page, err := parseTarget(raw)
	if err != nil {
		return "", nil, &Error{Kind: BadURL, Err: err}
	}
	if failure := c.checkTarget(u.Host, u.Port); failure != nil {
		return "", nil, failure
	}
	wire = wireURL(&u)
	if c.viaProxy(wire.Scheme) && !strings.HasPrefix(wire.Opaque, "//") {
		wire.Opaque = "//" + wire.Host + wire.Opaque
	}
	return page, wire, nil
}

// parseTarget returns raw parsed and written again, without fragment and credentials.
func parseTarget(raw string) (u weburl.URL, page string, err error) {
	if len(raw) > MaxURL {
		return u, "", errLong
	}
	if u, err = weburl.Parse(raw, nil); err != nil {
		return u, "", err
	}
	if !weburl.IsWeb(&u) {
		return u, "", schemeError(u.Scheme)
	}
	// Credentials in a link are not ours to use. Without them, URLs that differ in nothing else are
	// the same page.
	u.Username, u.Password = "", ""
	text := u.Append(make([]byte, 0, len(raw)+8), false)
	if string(text) != raw {
		raw = string(text)
	}
	return u, raw, nil
}

var breaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// withoutPassword returns raw, which may be anything, without credentials, for the text of errors.
func withoutPassword(raw string) string {
	raw = breaks.Replace(raw) // as the parser does, wherever they are
	const slashes = `/\`
	_, rest, _ := strings.Cut(raw, ":")
	rest = strings.TrimLeft(rest, slashes)
	from := len(raw) - len(rest)
	end := strings.IndexAny(rest, slashes+"?#")
	if end >= 0 && !cutInPassword(rest, end) {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		return raw[:from] + raw[from+at+1:]
	}
	return raw
}

// cutInPassword reports whether what looks like the end of the host in rest may be a character of a
// password that should have been escaped. Then a user looks like the host, and the beginning of a
// password like the port: it is no number, or no path follows it.
func cutInPassword(rest string, end int) bool {
	host := rest[:end]
	colon := strings.IndexByte(host[strings.IndexByte(host, ']')+1:], ':')
	if colon < 0 || strings.Contains(host, "@") {
		return false
	}
	digits := strings.TrimRight(host, "0123456789")
	return rest[end] == '?' || rest[end] == '#' || digits[len(digits)-1] != ':'
}

// wireURL returns u as a net/url value that sends exactly the bytes of u. net/url refuses paths
// that browsers send ("/%zz") and would escape others again. So path and query go into Opaque,
// which is left alone.
func wireURL(u *weburl.URL) *url.URL {
	w := &url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.Port != "" {
		w.Host += ":" + u.Port
	}
	w.Opaque = u.Path
	if u.HasQuery {
		w.Opaque += "?" + u.Query
	}
	if strings.HasPrefix(u.Path, "//") {
		// Opaque may not begin with two slashes, unless a host follows. That writes the absolute
		// form of a request's target, which every server must accept (RFC 9112, 3.2.2), and which
		// net/http turns back into a path for HTTP/2.
		w.Opaque = "//" + w.Host + w.Opaque
	}
	return w
}
