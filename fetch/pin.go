package fetch

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
)

// bottom is the http.Transport of a Client, below all layers. What it records of an exchange happens
// when a layer of Options.Wrap reads a body before it returns as well.
type bottom struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b bottom) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.pinned(req)
	x := exchangeOf(req.Context())
	if err != nil || x == nil {
		return resp, err
	}
	x.watch.unwritten() // the head is there
	if resp.Body != http.NoBody {
		resp.Body = arriving{resp.Body, x}
	}
	return resp, nil
}

// arriving is the body of a response as it comes.
type arriving struct {
	io.ReadCloser
	x *exchange
}

// Read implements io.Reader.
func (a arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.x.came(n)
	return n, err
}

// pinned sends a request that may have an address. The transport keeps connections by the host and
// port of their URL, so the address becomes a part of the host.
func (b bottom) pinned(req *http.Request) (*http.Response, error) {
	if b.Proxy != nil || req.URL == nil || strings.HasPrefix(req.URL.Host, "[") {
		return b.Transport.RoundTrip(req)
	}
	pin := pinTo(req.Context(), req.URL.Hostname())
	if !pin.IsValid() {
		return b.Transport.RoundTrip(req)
	}
	out, u := *req, *req.URL
	if out.Host == "" {
		out.Host = u.Host
	}
	u.Host = u.Hostname() + pinOf(pin)
	if port := req.URL.Port(); port != "" {
		u.Host += ":" + port
	}
	out.URL = &u
	resp, err := b.Transport.RoundTrip(&out)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// pinTo returns where requests with ctx to a host go; invalid means wherever its name leads, as those
// of a layer of Options.Wrap to another host than that of the Request.
func pinTo(ctx context.Context, host string) netip.Addr {
	if x := exchangeOf(ctx); x != nil && x.pinned == host {
		return x.pin
	}
	return netip.Addr{}
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
