package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// The causes with which a Get cancels its own context, to tell its own limits from the caller's.
var (
	errTime     = errors.New("time limit")
	errSlow     = errors.New("too slow")
	errAttempts = errors.New("too many attempts")
)

// maxAttempts is how many requests one Get may send. net/http repeats a request if a kept-alive
// connection turns out to be dead, or if an HTTP/2 server refuses the stream or says GOAWAY. Both
// happen in good faith, but a server that does it on each new connection would be asked thousands
// of times.
const maxAttempts = 3

// exchange is one request in flight. net/http reports to it from several goroutines, some of which
// may outlive the Get, hence the lock.
type exchange struct {
	ctx    context.Context // of the round trip; set before it and not changed
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	late     Kind           // of the error if the time runs out now
	addr     netip.AddrPort // of the server, once known
	wire     *wire          // the connection; nil for HTTP/2
	heads    *heads         // on that wire; nil for HTTP/2
	attempts int
	reused   bool
	timing   timing
	tls      *tls.ConnectionState

	watch watch
	trace httptrace.ClientTrace
}

type exchangeKey struct{}

// enter records what the exchange of ctx is waiting for. The transport may go on dialing for an
// exchange that got another connection meanwhile; such a dial is ignored.
func enter(ctx context.Context, late Kind, addr netip.AddrPort) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.attempts == 0 {
		x.late, x.addr = late, addr
	}
}

// reached records a step on the way to a connection, under the same condition. at selects the step.
func reached(ctx context.Context, at func(*timing) *time.Time) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.attempts == 0 {
		*at(&x.timing) = time.Now()
	}
}

func resolved(t *timing) *time.Time { return &t.resolved }
func dialed(t *timing) *time.Time   { return &t.dialed }
func secured(t *timing) *time.Time  { return &t.secured }

// newExchange returns an exchange on behalf of a caller with ctx, to be ended by end.
func newExchange(ctx context.Context) *exchange {
	x := &exchange{late: ConnectTimeout, timing: timing{start: time.Now()}}
	x.ctx, x.cancel = context.WithCancelCause(x.attach(ctx))
	return x
}

// attach returns a context through which dialing and net/http report to x.
func (x *exchange) attach(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	x.trace.GetConn, x.trace.GotConn = x.getConn, x.gotConn
	x.trace.WroteRequest = x.wroteRequest
	x.trace.GotFirstResponseByte = x.gotFirstByte
	return httptrace.WithClientTrace(ctx, &x.trace)
}

func (x *exchange) wroteRequest(httptrace.WroteRequestInfo) {
	x.watch.written()
	x.stamp(&x.timing.wroteRequest)
}

func (x *exchange) gotFirstByte() { x.stamp(&x.timing.firstByte) }

func (x *exchange) stamp(at *time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	*at = time.Now()
}

// getConn is called before most attempts. Canceling here stops an attempt too many early.
func (x *exchange) getConn(string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.attempts == maxAttempts {
		x.cancel(errAttempts)
	}
}

// exhausted reports whether the exchange of ctx has no attempt left. The transport would dial for
// it even though it is canceled.
func exhausted(ctx context.Context) bool {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.attempts == maxAttempts
}

func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.attempts == maxAttempts {
		// The transport may use an idle connection although the context has ended, and HTTP/2 may
		// come here without a getConn. Nothing can be sent on a closed connection.
		x.cancel(errAttempts)
		info.Conn.Close()
		return
	}
	if _, http1 := info.Conn.(*wire); http1 && info.Reused && x.attempts == maxAttempts-1 {
		// Twice a connection was dead, and this one may be. The last attempt is for a new one, which
		// alone shows how the server is. The transport drops this one and looks for the next.
		info.Conn.Close()
		return
	}
	// This is called once per attempt; the last connection counts.
	x.late, x.wire, x.heads, x.reused, x.tls = HeadTimeout, nil, nil, info.Reused, nil
	x.attempts++
	// A dial for this exchange may have lost to a connection that became idle.
	if info.Reused {
		x.timing = timing{start: x.timing.start}
	}
	x.timing.connected = time.Now()
	switch conn := info.Conn.(type) {
	case *wire:
		x.wire, x.heads, x.addr, x.tls = conn, conn.begin(), conn.addr, conn.tls
	case *tls.Conn:
		state := conn.ConnectionState()
		x.tls = &state
		if p, ok := conn.NetConn().(*peer); ok {
			x.addr = p.addr
		}
	}
}

// firstByte returns when the response began.
func (x *exchange) firstByte() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timing.firstByte.IsZero() { // Options.Wrap answered by itself
		return time.Now()
	}
	return x.timing.firstByte
}

// takeHeads returns the heads as they were on the wire; ok is false if they are not known.
func (x *exchange) takeHeads(status int) (request, response []byte, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wire == nil {
		return nil, nil, false
	}
	return x.wire.take(x.heads, status)
}

// describe copies what x knows to r.
func (x *exchange) describe(r *Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.Addr, r.Attempts, r.Reused, r.TLS = x.addr, x.attempts, x.reused, x.tls
	t := &x.timing
	r.Start, r.Resolved, r.Dialed, r.Secured = t.start, t.resolved, t.dialed, t.secured
	r.Connected, r.WroteRequest, r.FirstByte, r.Done = t.connected, t.wroteRequest, t.firstByte, t.done
}

// end releases the timer and the context.
func (x *exchange) end() {
	x.watch.end()
	x.cancel(nil)
}

// canceled returns the error of an exchange whose caller's context has ended.
func (x *exchange) canceled(parent context.Context, url string) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return &Error{
		Kind: Canceled, URL: url, Addr: x.addr, Err: context.Cause(parent), Attempts: x.attempts,
	}
}

// failure turns the error of a round trip into that of Get. parent is the caller's context.
func (x *exchange) failure(parent context.Context, err error, maxHeader int64) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.classify(parent, err, maxHeader)
	e.Attempts = x.attempts
	return e
}

// classify requires that x.mu is held.
//
// The order matters. If a context has ended, the error only echoes that, in a form that depends on
// where it caught the transport; so the contexts are checked first. The texts of net/http come
// last.
func (x *exchange) classify(parent context.Context, err error, maxHeader int64) *Error {
	var dialed *Error
	switch {
	case parent.Err() != nil:
		return &Error{Kind: Canceled, Addr: x.addr, Err: context.Cause(parent)}
	case context.Cause(x.ctx) == errAttempts:
		return &Error{Kind: TooManyAttempts, Addr: x.addr}
	case context.Cause(x.ctx) == errTime:
		cause := context.DeadlineExceeded
		if x.late == ResolveTimeout {
			cause = dnsError("", cause)
		}
		return &Error{Kind: x.late, Addr: x.addr, Err: cause}
	case errors.As(err, &dialed):
		// Several exchanges may share it, each with its own URL.
		e := *dialed
		return &e
	case isTLS(err): // through an HTTP proxy, the transport does the handshake
		return &Error{Kind: pick(err, TLS, TLSTimeout), Addr: x.addr, Err: err}
	case timedOut(err):
		return &Error{Kind: HeadTimeout, Addr: x.addr, Err: err}
	case x.attempts == 0 && x.watch.opts.Proxy != "": // it did not let the request through
		return proxyError(err)
	case x.headerTooLarge(err, maxHeader):
		return &Error{Kind: HeaderTooLarge, Addr: x.addr, Err: err}
	case disconnected(err), x.wire != nil && x.wire.brokeOff(x.heads):
		return &Error{Kind: Disconnected, Addr: x.addr, Err: err}
	case x.attempts == 0: // Options.Wrap or the transport would not send it
		return &Error{Kind: BadURL, Err: err}
	}
	return &Error{Kind: Protocol, Addr: x.addr, Err: err}
}

// headerTooLarge requires that x.mu is held.
func (x *exchange) headerTooLarge(err error, limit int64) bool {
	if x.wire != nil {
		// For a head that was cut within a line, net/http only says that it is malformed.
		return x.wire.overflows(x.heads, limit)
	}
	// HTTP/2 reports its limits only as texts. The second is for interim responses.
	text := err.Error()
	return errors.Is(err, errFields) || strings.Contains(text, "header list larger than") ||
		strings.Contains(text, "header list too large")
}
