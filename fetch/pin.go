package fetch

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// pinned is the http.Transport of a Client for requests that may have an address. The transport
// keeps connections by the host and port of their URL, so the address becomes a part of the host.
type pinned struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (p pinned) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	if x == nil || !x.pin.IsValid() || p.Proxy != nil || strings.HasPrefix(req.URL.Host, "[") {
		return p.Transport.RoundTrip(req)
	}
	out, u := *req, *req.URL
	if out.Host == "" {
		out.Host = u.Host
	}
	u.Host = u.Hostname() + pinOf(x.pin)
	if port := req.URL.Port(); port != "" {
		u.Host += ":" + port
	}
	out.URL = &u
	resp, err := p.Transport.RoundTrip(&out)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// pinOf returns the end of the host of a request to addr: no host name has a caret, and without
// colons it does not look like a port.
func pinOf(addr netip.Addr) string { return "^" + strings.ReplaceAll(addr.String(), ":", "_") }

// unpin returns a host and port that the transport uses for a request with ctx as the request has
// them.
func unpin(ctx context.Context, hostPort string) string {
	if x := exchangeOf(ctx); x != nil && x.pin.IsValid() {
		return strings.Replace(hostPort, pinOf(x.pin), "", 1)
	}
	return hostPort
}
