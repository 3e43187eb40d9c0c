package weburl

import (
	"cmp"
	"net"
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

// Server returns the host and port that net/http connects to for u if there is no proxy, with the
// host as HostName writes it if that is possible.
func Server(u *url.URL) string {
	return hostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort(u.Scheme)))
}

// SameServer reports whether addr, which a dialer was given, is what Server returns.
func SameServer(server, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && hostPort(host, port) == server
}

func hostPort(host, port string) string {
	if name, err := HostName(host); err == nil {
		host = name
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}
