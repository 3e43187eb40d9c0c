// Package httpctx has what layers of HTTP clients tell each other in the context of a request.
package httpctx

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/cause"
)

// EncodedBody is the key of a func(*http.Response) io.Writer, by which a layer gets bodies as they
// were sent: see fetch.Client.Transport. CrawlDelay is the key of the time.Duration that a
// robots.txt asks for: see package schedulerhttp. Pause is the key of a func() (resume func()), which
// a layer calls before it keeps a request waiting: a layer above limits the time of the rest. Yield is
// the key of another one, which a layer calls before a request waits for that of another caller: the
// holder of a scheduler.Lease gives it back. Unnamed struct types are identical in every package, so
// layers of other modules can use the same keys.
type (
	EncodedBody = struct{ EncodedBody struct{} }
	CrawlDelay  = struct{ RobotsCrawlDelay struct{} }
	Pause       = struct{ Pause struct{} }
	Yield       = struct{ Yield struct{} }
)

// ErrCanceled is the error of a request whose field Cancel was closed, in the words of net/http.
var ErrCanceled = errors.New("net/http: request canceled")

// Ended returns why the caller of a request with ctx no longer waits for it; nil while it does.
// canceled is the field Cancel of the request. An http.Client with a Timeout closes it when the
// deadline of ctx passes, and either may come first.
func Ended(ctx context.Context, canceled <-chan struct{}) error {
	if err := cause.Of(ctx); err != nil {
		return err
	}
	select {
	case <-canceled:
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		return ErrCanceled
	default:
		return nil
	}
}

// Redirected reports whether a layer below, which got the request from, has followed a redirect to
// another one. Only then has that another Response: layers also send copies, with other contexts,
// fields or addresses, which are none of the caller's business.
func Redirected(from, to *http.Request) bool {
	return to != nil && to.URL != nil && to.Response != nil && to.Response != from.Response
}

// RequestOf returns the request that a response names to a caller who has sent req, if a layer has added
// fields to a copy of that: the last one after redirects, without those fields and its context.
func RequestOf(resp *http.Response, req *http.Request, added http.Header) *http.Request {
	if !Redirected(req, resp.Request) {
		return req
	}
	of := resp.Request.WithContext(req.Context())
	of.Header = of.Header.Clone()
	for name := range added {
		if _, asked := req.Header[name]; !asked {
			delete(of.Header, name)
		}
	}
	return of
}

// layered is a context in which the values of another one come first.
type layered struct {
	context.Context
	first context.Context
}

// Value implements context.Context.
func (c layered) Value(key any) any {
	if v := c.first.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// WithTrace returns ctx with a trace in place of its own, if it has one. Package httptrace only
// adds to a trace.
func WithTrace(ctx context.Context, trace *httptrace.ClientTrace) context.Context {
	return layered{ctx, httptrace.WithClientTrace(context.Background(), trace)}
}

// silent has a trace that reports nothing. The hook hides that of a context below from package net,
// which keeps it elsewhere.
var silent = httptrace.WithClientTrace(context.Background(),
	&httptrace.ClientTrace{ConnectStart: func(string, string) {}})

// WithoutTrace returns ctx without its trace, for requests that are not those of its caller. What
// layers want for the caller's own request is not in it, either.
func WithoutTrace(ctx context.Context) context.Context { return layered{foreign{ctx}, silent} }

// foreign is the context of another request.
type foreign struct{ context.Context }

// Value implements context.Context.
func (c foreign) Value(key any) any {
	switch key {
	case EncodedBody{}, CrawlDelay{}, handshakeKey{}:
		return nil
	}
	return c.Context.Value(key)
}

// handshaking is the trace of a request whose TLS handshake may be done by a dialer.
type handshaking struct {
	caller *httptrace.ClientTrace
	done   atomic.Bool
}

type handshakeKey struct{}

// WithHandshake returns ctx for a request over an http.Transport whose dialers call [Handshake], and
// [Reported] for a *tls.Conn that DialTLSContext returns. Without it, http.Transport would report the
// handshake of HTTP/2 once more, and that of HTTP/1 not at all.
func WithHandshake(ctx context.Context) context.Context {
	caller := httptrace.ContextClientTrace(ctx)
	if caller == nil || caller.TLSHandshakeStart == nil && caller.TLSHandshakeDone == nil {
		return ctx
	}
	h := &handshaking{caller: caller}
	trace := *caller
	trace.TLSHandshakeStart = func() {
		if !h.done.Load() {
			h.start()
		}
	}
	trace.TLSHandshakeDone = func(state tls.ConnectionState, err error) {
		if !h.done.Load() {
			h.end(state, err)
		}
	}
	return context.WithValue(WithTrace(ctx, &trace), handshakeKey{}, h)
}

func (h *handshaking) start() {
	if h.caller.TLSHandshakeStart != nil {
		h.caller.TLSHandshakeStart()
	}
}

func (h *handshaking) end(state tls.ConnectionState, err error) {
	if h.caller.TLSHandshakeDone != nil {
		h.caller.TLSHandshakeDone(state, err)
	}
}

// Reported keeps http.Transport from reporting a handshake once more, of a connection that it knows to have
// TLS. Of others it reports only a handshake of its own, with a server through them.
func Reported(ctx context.Context) {
	if h, _ := ctx.Value(handshakeKey{}).(*handshaking); h != nil {
		h.done.Store(true)
	}
}

// Handshake does the TLS handshake of a connection, and reports it to the trace of the request that
// it is dialed for. ctx comes from WithHandshake.
func Handshake(ctx context.Context, conn *tls.Conn) error {
	h, _ := ctx.Value(handshakeKey{}).(*handshaking)
	if h == nil {
		return conn.HandshakeContext(ctx)
	}
	h.start()
	err := conn.HandshakeContext(ctx)
	var state tls.ConnectionState
	if err == nil {
		state = conn.ConnectionState()
	}
	h.end(state, err)
	return err
}
