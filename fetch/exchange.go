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
	errTime = errors.New("time limit")
	errSlow = errors.New("too slow")
)

// exchange is one Get under way. net/http reports on it from several goroutines, some of which may
// outlive the Get, hence the lock.
type exchange struct {
	mu       sync.Mutex
	late     Kind           // what it is if time runs out now
	addr     netip.AddrPort // of the server, once there is one
	wire     *wire          // that carries it; nil for HTTP/2
	heads    *heads         // that went over the wire; nil for HTTP/2
	attempts int
	reused   bool
	timing   Timing
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
func reached(ctx context.Context, at func(*Timing) *time.Time) {
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

func resolved(t *Timing) *time.Time { return &t.Resolved }
func dialled(t *Timing) *time.Time  { return &t.Dialled }
func secured(t *Timing) *time.Time  { return &t.Secured }

// attach returns a context through which dialling and net/http report to x.
func (x *exchange) attach(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	x.trace.GotConn, x.trace.WroteRequest = x.gotConn, x.wroteRequest
	x.trace.GotFirstResponseByte = x.gotFirstByte
	return httptrace.WithClientTrace(ctx, &x.trace)
}

func (x *exchange) wroteRequest(httptrace.WroteRequestInfo) {
	x.watch.written()
	x.stamp(&x.timing.WroteRequest)
}

func (x *exchange) gotFirstByte() { x.stamp(&x.timing.FirstByte) }

func (x *exchange) stamp(at *time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	*at = time.Now()
}

func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	// This is called once for each attempt, so that the last connection is the one that counts.
	x.late, x.wire, x.heads, x.reused, x.tls = HeadTimeout, nil, nil, info.Reused, nil
	x.attempts++
	// A dial may have begun for this exchange and lost to a connection that came free.
	if info.Reused {
		x.timing.Resolved, x.timing.Dialled, x.timing.Secured = time.Time{}, time.Time{}, time.Time{}
	}
	x.timing.Connected = time.Now()
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
	r.Addr, r.Attempts, r.Reused, r.Timing, r.TLS = x.addr, x.attempts, x.reused, x.timing, x.tls
}

// failure turns the error of a round trip into the one that Get returns. ctx is that of the round
// trip, parent the caller's.
//
// The order matters. Whoever ended the context is asked first, because the error is then no more
// than an echo of it, and of a kind that depends on where it caught the transport. The texts of
// net/http are asked last.
func (x *exchange) failure(ctx, parent context.Context, err error, maxHeader int64) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var dialled *Error
	switch {
	case parent.Err() != nil:
		return &Error{Kind: Canceled, Addr: x.addr, Err: context.Cause(parent)}
	case context.Cause(ctx) == errTime:
		return &Error{Kind: x.late, Addr: x.addr, Err: context.DeadlineExceeded}
	case errors.As(err, &dialled):
		// It may belong to several exchanges, each with a URL of its own.
		e := *dialled
		return &e
	case timedOut(err):
		return &Error{Kind: HeadTimeout, Addr: x.addr, Err: err}
	case x.headerTooLarge(err, maxHeader):
		return &Error{Kind: HeaderTooLarge, Addr: x.addr, Err: err}
	case disconnected(err):
		return &Error{Kind: Disconnected, Addr: x.addr, Err: err}
	}
	return &Error{Kind: Protocol, Addr: x.addr, Err: err}
}

// headerTooLarge requires that x.mu is held.
func (x *exchange) headerTooLarge(err error, limit int64) bool {
	if x.wire != nil {
		// net/http may say of a head that was cut off in a line only that it makes no sense.
		return x.wire.overflows(x.heads, limit)
	}
	// HTTP/2 keeps its limits to itself; the texts are all that comes out. The second one is that of
	// interim responses.
	text := err.Error()
	return errors.Is(err, errFields) || strings.Contains(text, "header list larger than") ||
		strings.Contains(text, "header list too large")
}
