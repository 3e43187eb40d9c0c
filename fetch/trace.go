package fetch

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/httpwire"
)

// traced returns a context through which dialing and net/http report to x, and through x to the
// trace that ctx has, with the events and in the order of an http.Transport.
//
// The caller's hooks are not simply added to, since they would run even where net/http calls them
// at the wrong time, or where the transport sees something other than the caller, such as the host
// of a pinned request.
func (x *exchange) traced(ctx context.Context) context.Context {
	ctx = httpctx.WithHandshake(ctx)
	if caller := httptrace.ContextClientTrace(ctx); caller != nil {
		x.caller, x.trace = *caller, *caller
		x.trace.DNSStart, x.trace.DNSDone = nil, nil // see resolve
	}
	x.trace.GetConn, x.trace.GotConn = x.getConn, x.gotConn
	x.trace.WroteRequest = x.wroteRequest
	x.trace.GotFirstResponseByte = x.gotFirstByte
	if x.caller.Got1xxResponse != nil {
		x.trace.Got1xxResponse = x.got1xx
	}
	return context.WithValue(httpctx.WithTrace(ctx, &x.trace), exchangeKey{}, x)
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a dial is for, or nil.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// dialing records that the exchange of ctx waits for a step on the way to a connection, and what
// its error is if the time runs out now. The transport may go on dialing for an exchange that got
// another connection meanwhile; such a dial is ignored.
func dialing(ctx context.Context, late Kind, addr netip.AddrPort) {
	if x := exchangeOf(ctx); x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.connecting {
			x.late, x.addr = late, addr
		}
	}
}

// reached records the same for the steps of a connection through a proxy: [Proxy] until the proxy is
// reached, then ConnectTimeout until it has reached the server, and then TLSTimeout.
func reached(ctx context.Context, late Kind) {
	if x := exchangeOf(ctx); x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.connecting {
			x.late = late
		}
	}
}

// resolve calls Options.Resolve. The caller's trace sees one look-up, and neither that trace nor x
// sees what the resolver does for it, which may be requests to a name server.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	var caller httptrace.ClientTrace
	if x := exchangeOf(ctx); x != nil {
		caller = x.caller
	}
	if caller.DNSStart != nil {
		caller.DNSStart(httptrace.DNSStartInfo{Host: host})
	}
	addrs, err := c.opts.Resolve(httpctx.WithoutTrace(ctx), host)
	if caller.DNSDone != nil {
		done := httptrace.DNSDoneInfo{Err: err}
		for _, a := range addrs {
			done.Addrs = append(done.Addrs, net.IPAddr{IP: a.AsSlice(), Zone: a.Zone()})
		}
		caller.DNSDone(done)
	}
	return addrs, err
}

// untraced returns Options.Dial. The caller's trace sees the connections that are made, but neither
// it nor the exchange sees requests that the function may send.
func untraced(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		out := httpctx.WithoutTrace(ctx)
		if x := exchangeOf(ctx); x != nil && (x.caller.ConnectStart != nil || x.caller.ConnectDone != nil) {
			out = httpctx.WithTrace(out, &httptrace.ClientTrace{
				ConnectStart: x.caller.ConnectStart, ConnectDone: x.caller.ConnectDone,
			})
		}
		conn, err := dial(out, network, addr)
		if conn == nil && err == nil {
			err = ownError{errors.New("Options.Dial returned neither a connection nor an error")}
		}
		return conn, err
	}
}

// wroteRequest, gotFirstByte, getConn and gotConn are called by net/http.
func (x *exchange) wroteRequest(info httptrace.WroteRequestInfo) {
	x.watch.written()
	x.stamp(&x.wroteAt)
	if x.caller.WroteRequest != nil {
		x.caller.WroteRequest(info)
	}
}

func (x *exchange) gotFirstByte() {
	x.stamp(&x.firstByteAt)
	x.expect(bodyRoom)
	if x.caller.GotFirstResponseByte != nil {
		x.caller.GotFirstResponseByte()
	}
}

// getConn is called before most attempts. Canceling here stops an attempt too many early.
func (x *exchange) getConn(hostPort string) {
	x.mu.Lock()
	x.connecting = true
	if x.attempts == maxAttempts {
		x.cancel(errAttempts)
	}
	x.mu.Unlock()
	x.watch.unwritten()
	if x.caller.GetConn != nil {
		x.caller.GetConn(unpin(x.ctx, hostPort))
	}
}

// got1xx is called for each interim response if the caller has a hook for it, and then net/http
// does not limit them itself.
func (x *exchange) got1xx(code int, header textproto.MIMEHeader) error {
	x.mu.Lock()
	for name, values := range header {
		for _, value := range values {
			x.interim += int64(len(name) + len(value) + fieldCost)
		}
	}
	x.interim += fieldCost
	over := x.interim > x.watch.opts.MaxHeader
	x.mu.Unlock()
	if over {
		return httpwire.ErrFields
	}
	err := x.caller.Got1xxResponse(code, header)
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.refused = err
	}
	return err
}

// fieldCost is what HTTP/2 counts for a field besides its name and value (RFC 9113, 6.5.2).
const fieldCost = 32

// gotConn is called once per attempt. The caller's hook may wait, for example until the address of
// the connection may be visited; that is not the server's time.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	if !x.attempt(info) || x.caller.GotConn == nil {
		return
	}
	x.watch.suspend()
	x.caller.GotConn(info)
	x.watch.proceed()
}
