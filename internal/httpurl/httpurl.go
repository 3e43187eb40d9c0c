// Package httpurl says what net/http makes of a URL. It knows nothing of international names, whose
// tables take more than a megabyte of a program.
package httpurl

import (
	"net"
	"net/url"
	"strings"
)

// Requested returns the URL that net/http requests for u: without credentials and fragment, which
// are not sent as a part of it. Clients that need exact control over the bytes of a path put it
// into Opaque, and then URL.String leaves out the host.
func Requested(u *url.URL) string {
	bare := *u
	bare.User, bare.Fragment, bare.RawFragment = nil, "", ""
	if strings.HasPrefix(u.Opaque, "/") && !strings.HasPrefix(u.Opaque, "//") {
		bare.Opaque = "//" + u.Host + u.Opaque
	}
	return bare.String()
}

// Port returns the port that net/http connects to for u if there is no proxy.
func Port(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// IsServer reports whether addr, which a dialer was given, is the server of u, and not a proxy. Any
// name in Punycode passes for that of a URL in another script.
func IsServer(addr string, u *url.URL) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != Port(u) {
		return false
	}
	name := u.Hostname()
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return strings.Contains(host, "xn--")
	}
	return strings.EqualFold(host, name)
}
