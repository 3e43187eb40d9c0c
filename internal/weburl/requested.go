package weburl

import (
	"net/url"
	"strings"
)

// Requested returns the URL that net/http requests for u: without credentials and fragment, which are
// not sent as a part of it. Clients that need exact control over the bytes of a path put it into
// Opaque, and then URL.String leaves out the host.
func Requested(u *url.URL) string {
	bare := *u
	bare.User, bare.Fragment, bare.RawFragment = nil, "", ""
	if strings.HasPrefix(u.Opaque, "/") && !strings.HasPrefix(u.Opaque, "//") {
		bare.Opaque = "//" + u.Host + u.Opaque
	}
	return bare.String()
}
