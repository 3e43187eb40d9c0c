package fetch

import (
	"context"
	"net"
	"net/http/httptrace"
	"net/netip"

	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// traced returns a context through which dialing and net/http report to x, and through x to the
// trace that ctx has, with the events and in the order of an http.Transport.
//
// The caller's hooks are not simply added to, since they would run even where net/http calls them at
// the wrong time, or where the transport sees something other than the caller, such as the host of a
// pinned request.
func (x *exchange) traced(ctx context.Context) context.Context {
	ctx = httpctx.WithHandshake(ctx)
	if caller := httptrace.ContextClientTrace(ctx); caller != nil {
		x.caller, x.trace = *caller, *caller
		x.trace.DNSStart, x.trace.DNSDone = nil, nil // see resolve
	}
	x.trace.GetConn, x.trace.GotConn = x.getConn, x.gotConn
	x.trace.WroteRequest = x.wroteRequest
	x.trace.GotFirstResponseByte = x.gotFirstByte
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
		if x.attempts == 0 {
			x.late, x.addr = late, addr
		}
	}
}

// resolve calls Options.Resolve. The caller's trace sees one look-up, and not what the resolver does
// for it, such as connecting to a name server.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	x := exchangeOf(ctx)
	if x == nil || x.caller.DNSStart == nil && x.caller.DNSDone == nil && x.caller.ConnectStart == nil &&
		x.caller.ConnectDone == nil {
		return c.opts.Resolve(ctx, host)
	}
	if x.caller.DNSStart != nil {
		x.caller.DNSStart(httptrace.DNSStartInfo{Host: host})
	}
	addrs, err := c.opts.Resolve(httpctx.WithoutTrace(ctx), host)
	if x.caller.DNSDone != nil {
		done := httptrace.DNSDoneInfo{Err: err}
		for _, a := range addrs {
			done.Addrs = append(done.Addrs, net.IPAddr{IP: a.AsSlice(), Zone: a.Zone()})
		}
		x.caller.DNSDone(done)
	}
	return addrs, err
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
	x.peer.expect(bodyRoom) // x.peer does not change while the transport waits for the response
	if x.caller.GotFirstResponseByte != nil {
		x.caller.GotFirstResponseByte()
	}
}

// getConn is called before most attempts. Canceling here stops an attempt too many early.
func (x *exchange) getConn(hostPort string) {
	x.mu.Lock()
	if x.attempts == maxAttempts {
		x.cancel(errAttempts)
	}
	x.mu.Unlock()
	if x.caller.GetConn != nil {
		x.caller.GetConn(unpin(x.ctx, hostPort))
	}
}

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
