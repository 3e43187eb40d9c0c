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

// The causes with which a Get cancels its own context. They tell its limits from the caller's.
var (
	errTime     = errors.New("time limit")
	errSlow     = errors.New("too slow")
	errAttempts = errors.New("too many attempts")
)

// maxAttempts is how many requests one Get may put on the wire. net/http sends one again when a
// kept-alive connection turns out to be dead, or an HTTP/2 server refuses the stream or says
// GOAWAY. Both happen in good faith; a server that does it to each new connection would be asked
// thousands of times.
const maxAttempts = 3

// exchange is one Get under way. net/http reports on it from several goroutines, some of which may
// outlive the Get, hence the lock.
type exchange struct {
	ctx    context.Context // of the round trip; set before it and not changed
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	late     Kind           // what it is if time runs out now
	addr     netip.AddrPort // of the server, once there is one
	wire     *wire          // that carries it; nil for HTTP/2
	heads    *heads         // that went over the wire; nil for HTTP/2
	attempts int
	reused   bool
	timing   timing
	tls      *tls.ConnectionState

	watch watch
	trace httptrace.ClientTrace
}

type exchangeKey struct{}

// enter notes what the exchange behind ctx is waiting for. A dial may outlive the wait of the
// exchange that began it, when another connection came free first; then it is of no interest.
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

// reached notes an instant on the way to a connection, under the same condition. at picks it from
// the timing.
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
func dialled(t *timing) *time.Time  { return &t.dialled }
func secured(t *timing) *time.Time  { return &t.secured }

// newExchange returns an exchange on behalf of a caller with ctx, to be ended by end.
func newExchange(ctx context.Context) *exchange {
	x := &exchange{late: ConnectTimeout, timing: timing{start: time.Now()}}
	x.ctx, x.cancel = context.WithCancelCause(x.attach(ctx))
	return x
}

// attach returns a context through which dialling and net/http report to x.
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

// getConn is called before each attempt. Canceling there keeps most attempts too many from going
// any further, be it to a new connection or to one that is kept.
func (x *exchange) getConn(string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.attempts == maxAttempts {
		x.cancel(errAttempts)
	}
}

// exhausted reports whether the exchange behind ctx has no attempt left. Its connections are not
// worth dialling: the transport would do so even though the exchange is canceled.
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
		// The transport may prefer a connection that is at hand to the end of the context, and
		// HTTP/2 may come here without a getConn. On a connection that is closed, nothing can be
		// sent.
		x.cancel(errAttempts)
		info.Conn.Close()
		return
	}
	// This is called once for each attempt, so that the last connection is the one that counts.
	x.late, x.wire, x.heads, x.reused, x.tls = HeadTimeout, nil, nil, info.Reused, nil
	x.attempts++
	// A dial may have begun for this exchange and lost to a connection that came free.
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
	if x.timing.firstByte.IsZero() { // what Options.Wrap has put there answered by itself
		return time.Now()
	}
	return x.timing.firstByte
}

// takeHeads gives away the heads as they were on the wire; ok is false if they are not known.
func (x *exchange) takeHeads(status int) (request, response []byte, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wire == nil {
		return nil, nil, false
	}
	return x.wire.take(x.heads, status)
}

// describe copies to r what x knows of it.
func (x *exchange) describe(r *Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.Addr, r.Attempts, r.Reused, r.TLS = x.addr, x.attempts, x.reused, x.tls
	t := &x.timing
	r.Start, r.Resolved, r.Dialled, r.Secured, r.Connected = t.start, t.resolved, t.dialled, t.secured, t.connected
	r.WroteRequest, r.FirstByte, r.Done = t.wroteRequest, t.firstByte, t.done
}

// end lets go of what the exchange holds.
func (x *exchange) end() {
	x.watch.end()
	x.cancel(nil)
}

// canceled returns the error of an exchange whose caller has left.
func (x *exchange) canceled(parent context.Context, url string) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return &Error{
		Kind: Canceled, URL: url, Addr: x.addr, Err: context.Cause(parent), Attempts: x.attempts,
	}
}

// failure turns the error of a round trip into the one that Get returns. parent is the caller's
// context.
func (x *exchange) failure(parent context.Context, err error, maxHeader int64) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.classify(parent, err, maxHeader)
	e.Attempts = x.attempts
	return e
}

// classify requires that x.mu is held.
//
// The order matters. Whoever ended the context is asked first, because the error is then no more
// than an echo of it, and of a kind that depends on where it caught the transport. The texts of
// net/http are asked last.
func (x *exchange) classify(parent context.Context, err error, maxHeader int64) *Error {
	var dialled *Error
	switch {
	case parent.Err() != nil:
		return &Error{Kind: Canceled, Addr: x.addr, Err: context.Cause(parent)}
	case context.Cause(x.ctx) == errAttempts:
		return &Error{Kind: TooManyAttempts, Addr: x.addr}
	case context.Cause(x.ctx) == errTime:
		return &Error{Kind: x.late, Addr: x.addr, Err: context.DeadlineExceeded}
	case errors.As(err, &dialled):
		// It may belong to several exchanges, each with a URL of its own.
		e := *dialled
		return &e
	case isTLS(err): // through an HTTP proxy, where the transport does the handshake
		return &Error{Kind: pick(err, TLS, TLSTimeout), Addr: x.addr, Err: err}
	case timedOut(err):
		return &Error{Kind: HeadTimeout, Addr: x.addr, Err: err}
	case x.attempts == 0 && x.watch.opts.Proxy != "": // it did not let the request through
		return &Error{Kind: Proxy, Err: err}
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
		// net/http may say of a head that was cut off in a line only that it makes no sense.
		return x.wire.overflows(x.heads, limit)
	}
	// HTTP/2 keeps its limits to itself; the texts are all that comes out. The second one is that
	// of interim responses.
	text := err.Error()
	return errors.Is(err, errFields) || strings.Contains(text, "header list larger than") ||
		strings.Contains(text, "header list too large")
}
