package fetch

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// WithAddr returns a context whose requests go to one address, whatever their host names resolve
// to. A kept connection to another address is not reused for them. Use it if a delay or a budget
// was counted for an address, as package scheduler does: between the count and the request, a name
// may come to mean another address, or an old connection may still lead to a former one.
//
// Options.Reach holds for addr as for any other. A URL whose host is an address goes there, and so
// does a request through a proxy that resolves names. An invalid addr changes nothing.
func WithAddr(ctx context.Context, addr netip.Addr) context.Context {
	return context.WithValue(ctx, addrKey{}, addr.Unmap())
}

type addrKey struct{}

// addrOf returns the address of WithAddr; it is invalid if there is none.
func addrOf(ctx context.Context) netip.Addr {
	addr, _ := ctx.Value(addrKey{}).(netip.Addr)
	return addr
}

// pinned is the http.Transport of a Client for requests that may have an address. The transport
// keeps connections by the host and port of their URL, so the address becomes a part of the host.
type pinned struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (p pinned) RoundTrip(req *http.Request) (*http.Response, error) {
	addr := addrOf(req.Context())
	if !addr.IsValid() || p.Proxy != nil || strings.HasPrefix(req.URL.Host, "[") {
		return p.Transport.RoundTrip(req)
	}
	out, u := *req, *req.URL
	if out.Host == "" {
		out.Host = u.Host
	}
	u.Host = u.Hostname() + pinOf(addr)
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
	if addr := addrOf(ctx); addr.IsValid() {
		return strings.Replace(hostPort, pinOf(addr), "", 1)
	}
	return hostPort
}
