package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/httpwire"
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/spinneret-go/spinneret/internal/upload"
)

// The causes with which a Get cancels its own context, to tell its own limits from the caller's.
var (
	errTime     = errors.New("time limit")
	errSlow     = errors.New("too slow")
	errAttempts = errors.New("too many attempts")

	// Instead of errTime, while nobody waits for the server.
	errReader error = ownError{context.DeadlineExceeded}
)

// ownError is an error of the client's own making.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// Local is what Error.Local asks for.
func (ownError) Local() bool { return true }

// maxAttempts is how many requests one Get may send. net/http repeats a request if a kept-alive
// connection turns out to be dead, or if an HTTP/2 server refuses the stream or says GOAWAY. Both
// happen in good faith, but a server that does it on each new connection would be asked thousands
// of times.
const maxAttempts = 3

// exchange is one request in flight. net/http reports to it from several goroutines, some of which
// may outlive the Get, hence the lock.
type exchange struct {
	parent context.Context // of the caller
	quit   <-chan struct{} // Request.Cancel of the caller; nil if it is not set
	ctx    context.Context // of the round trip, a child of parent; set before it and not changed
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	connecting bool               // net/http looks for a connection and has not found one yet
	late       Kind               // to report if the time runs out now; by dials only while connecting
	addr       netip.AddrPort     // of the server, once known
	peers      [maxAttempts]*peer // of the attempts; Options.Wrap may make several at once
	heads      *httpwire.Heads    // on the last connection; nil for HTTP/2
	attempts   int
	reused     bool
	interim    int64 // bytes of interim responses that the caller was told of
	refused    error // what the caller returned for one of them
	tls        *tls.ConnectionState
	pin        netip.Addr // of Request.Addr; set before the round trip and not changed
	pinned     string     // the host that is there; likewise

	start, wroteAt, firstByteAt time.Time

	watch  watch
	upload upload.Watch
	intime atomic.Bool           // the last piece of the request's body was asked for before the caller's deadline
	tardy  atomic.Bool           // which passed while a piece was read
	trace  httptrace.ClientTrace // what net/http sees
	caller httptrace.ClientTrace // what the caller has in its context, if anything
}

// newExchange returns an exchange on behalf of a caller with ctx, to be ended by end.
func newExchange(ctx context.Context) *exchange {
	x := &exchange{parent: ctx, late: ConnectTimeout, start: time.Now()}
	x.ctx, x.cancel = context.WithCancelCause(x.traced(ctx))
	return x
}

func (x *exchange) stamp(at *time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	*at = time.Now()
}

// exhausted reports whether the exchange of ctx has no attempt left. The transport would dial for
// it even though it is canceled.
func exhausted(ctx context.Context) bool {
	x := exchangeOf(ctx)
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.attempts == maxAttempts
}

// attempt begins one of the attempts, on a connection that the transport has chosen, and reports
// whether the request may be sent.
func (x *exchange) attempt(info httptrace.GotConnInfo) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	var state *tls.ConnectionState
	switch conn := info.Conn.(type) {
	case *httpwire.Conn:
		state = conn.TLS
	case *tls.Conn: // of HTTP/2, or through a proxy
		of := conn.ConnectionState()
		state = &of
	}
	http1 := state == nil || state.NegotiatedProtocol != "h2"
	if x.attempts == maxAttempts {
		// The transport may use an idle connection although the context has ended, and HTTP/2 may
		// come here without a getConn. HTTP/2 sends nothing for a context that has ended, and the
		// connection may have other requests. HTTP/1 cannot send on a closed connection.
		x.cancel(errAttempts)
		if http1 {
			info.Conn.Close()
		}
		return false
	}
	if http1 && info.Reused && x.attempts == maxAttempts-1 {
		// Twice a connection was dead, and this one may be. The last attempt is for a new one,
		// which alone shows how the server is. The transport drops this one and looks for the next.
		info.Conn.Close()
		return false
	}
	// The last connection counts.
	x.connecting = false
	x.late, x.heads, x.reused, x.tls = HeadTimeout, nil, info.Reused, state
	p := peerOf(info.Conn)
	x.peers[x.attempts] = p
	x.attempts++
	x.wroteAt, x.firstByteAt = time.Time{}, time.Time{}
	x.watch.unwritten()
	if p != nil {
		x.addr = p.addr
	}
	if conn, ok := info.Conn.(*httpwire.Conn); ok {
		x.heads = conn.Begin()
	}
	if state != nil {
		p.join(headRoom+x.watch.opts.MaxHeader, !http1)
	}
	return true
}

// firstByte returns when the response began.
func (x *exchange) firstByte() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.firstByteAt.IsZero() { // Options.Wrap answered by itself
		return time.Now()
	}
	return x.firstByteAt
}

// takeHeads returns the heads of resp as they were on the wire; ok is false if they are not known.
func (x *exchange) takeHeads(resp *http.Response) (request, response []byte, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.heads == nil {
		return nil, nil, false
	}
	request, response, ok = x.heads.Take(resp)
	return request, response, ok && request != nil
}

// came records n bytes of a body, below all layers.
func (x *exchange) came(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.peers {
		p.read(n)
	}
}

// asked records that the server waits for a piece of the request's body.
func (x *exchange) asked() {
	x.intime.Store(x.parent.Err() == nil)
	x.watch.pause()
}

// sent records that n bytes of the request's body are sent, for which the server has waited since asked.
func (x *exchange) sent(n int) {
	x.watch.resume()
	if x.parent.Err() != nil && x.intime.Load() {
		x.tardy.Store(true)
	}
	x.expect(roomPerPiece + int64(n)/16)
}

// expect gives the server room for n more bytes.
func (x *exchange) expect(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.peers {
		p.expect(n)
	}
}

// describe copies what x knows to r.
func (x *exchange) describe(r *Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.Addr, r.Attempts, r.Reused, r.TLS = x.addr, x.attempts, x.reused, x.tls
	r.Start, r.WroteRequest, r.FirstByte = x.start, x.wroteAt, x.firstByteAt
}

// end releases the timer, the context and the share of a connection.
func (x *exchange) end() {
	x.watch.end()
	x.cancel(nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, p := range x.peers {
		if x.firstByteAt.IsZero() {
			p.expect(streamBuffer) // the response may still come, as after a body that nobody wanted
		}
		p.leave()
		x.peers[i] = nil
	}
	if x.heads != nil {
		x.heads.Detach()
	}
}

// cut returns the error of a body that ended too early.
func (x *exchange) cut(kind Kind, cause error) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return &Error{Kind: kind, Addr: x.addr, Err: cause, Attempts: x.attempts}
}

// failure turns the error of a round trip into that of Get.
func (x *exchange) failure(err error, o *Options) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.classify(err, o)
	e.Attempts = x.attempts
	return e
}

// classify requires that x.mu is held.
//
// The order matters. If a context has ended, the error only echoes that, in a form that depends on
// where it caught the transport; so the contexts are checked first. The texts of net/http come
// last.
func (x *exchange) classify(err error, o *Options) *Error {
	var dialed *Error
	ended := httpctx.Ended(x.parent, x.quit)
	left := ended != nil && (!timedOut(ended) || x.tardy.Load() || x.intime.Load() && x.watch.waits())
	if x.parent.Err() != nil {
		ended = context.Cause(x.parent) // alone, as net/http returns it
	}
	switch {
	case ended != nil:
		return &Error{Kind: Canceled, Addr: x.addr, Err: ended, left: left}
	case x.refused != nil:
		return &Error{Kind: Canceled, Addr: x.addr, Err: x.refused, left: true}
	case context.Cause(x.ctx) == errAttempts:
		return &Error{Kind: TooManyAttempts, Addr: x.addr}
	case x.upload.Failed(), says(err, "invalid Host header", "invalid request :path"):
		return &Error{Kind: BadURL, Addr: x.addr, Err: err}
	case context.Cause(x.ctx) == errTime && x.late == Proxy:
		return proxyError(context.DeadlineExceeded)
	case context.Cause(x.ctx) == errReader: // waiting for the request's body
		return &Error{Kind: x.late, Addr: x.addr, Err: errReader}
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
	case x.connecting && o.Proxy != "":
		return x.unconnected(err)
	case timedOut(err):
		return &Error{Kind: HeadTimeout, Addr: x.addr, Err: err}
	case x.headTooLarge(err, o.MaxHeader):
		return &Error{Kind: HeaderTooLarge, Addr: x.addr, Err: err}
	case disconnected(err), x.heads != nil && x.heads.BrokeOff():
		return &Error{Kind: Disconnected, Addr: x.addr, Err: err}
	case alerted(err):
		return &Error{Kind: TLS, Addr: x.addr, Err: err}
	case x.attempts == 0: // Options.Wrap or the transport would not send it
		return &Error{Kind: BadURL, Err: err}
	}
	return &Error{Kind: Protocol, Addr: x.addr, Err: err}
}

// unconnected returns the error of a connection that net/http did not get through an HTTP proxy. It
// requires that x.mu is held.
//
// The errors of a server's handshake have no types by which they could be told from those of a proxy
// that breaks off, so the step decides.
func (x *exchange) unconnected(err error) *Error {
	switch {
	case x.late == TLSTimeout:
		return &Error{Kind: pick(err, TLS, TLSTimeout), Addr: x.addr, Err: neterr.Handshake(err)}
	case x.late == ConnectTimeout && timedOut(err):
		return &Error{Kind: ConnectTimeout, Addr: x.addr, Err: err}
	}
	return proxyError(err)
}

// headTooLarge requires that x.mu is held.
func (x *exchange) headTooLarge(err error, limit int64) bool {
	if errors.Is(err, httpwire.ErrFields) || x.interim > limit || slices.ContainsFunc(x.peers[:], (*peer).flooded) {
		return true
	}
	if x.heads != nil {
		// For a head that was cut within a line, net/http only says that it is malformed.
		return x.heads.TooLarge(limit)
	}
	// Without recorded heads, through a proxy and over HTTP/2, limits are reported only as texts, if at
	// all. The last is for interim responses.
	return says(err, "request header list larger than", "net/http: server response headers exceeded") ||
		resets(err, "response header list larger than advertised limit") || resets(err, "header list too large")
}
