package schedulerhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/spinneret-go/spinneret/scheduler"
)

// WaitError is the error of a request that cannot start before its deadline, or within
// Transport.MaxWait. Until says when it could.
type WaitError = scheduler.WaitError

// Transport is an http.RoundTripper that waits until the host may be visited and then calls another
// RoundTripper. Its methods are safe for concurrent use. Its fields must not change during a call.
type Transport struct {
	// MaxWait bounds how long a request waits for its host and its address. A request that cannot
	// start by then fails with a [WaitError], at once if that is known beforehand. 0 means that it
	// waits as long as its context allows.
	MaxWait time.Duration

	// Failure reports whether a response counts as a failure, which lengthens the delays of its host
	// and address, in addition to 429 and 503. Some sites slow crawlers down by 403, for example. It
	// must not read the body. nil means no others.
	Failure func(*http.Response) bool

	// Arrival bounds the time from writing a request until it reaches the server. If it is set, the
	// delay counts from then, or from the first byte of the response if that is earlier. With
	// MaxPerAddr of 2, the next request then need not wait for a slow page. Arrival has to include
	// the jitter of the network: if a request takes longer, the next one may come too early by the
	// difference. 0 means unknown: only the first byte counts.
	Arrival time.Duration

	base  http.RoundTripper
	hosts *scheduler.Scheduler[struct{}]
}

// NewTransport returns a Transport on top of base; nil means http.DefaultTransport. It has no
// goroutines in the background and need not be closed.
func NewTransport(base http.RoundTripper, o scheduler.Options) *Transport {
	t := &Transport{hosts: scheduler.New[struct{}](o)}
	return t.With(base)
}

// With returns a Transport on top of another base, with the fields and the hosts of t: requests
// through either of them keep the delays together. Use it for an archive, a proxy or a login of each
// tenant. A nil base means http.DefaultTransport.
func (t *Transport) With(base http.RoundTripper) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	again := *t
	again.base = base
	return &again
}

// Hosts returns the scheduler of the requests. Use it for settings of a host, to explain why a host
// waits, or to save and restore the state.
func (t *Transport) Hosts() *scheduler.Scheduler[struct{}] { return t.hosts }

// CloseIdleConnections calls the method of that name of the RoundTripper below, if it has one.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends the request when its host may be visited, and also its address if that is known.
// It does not change the request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	host := hostOf(r.URL.Hostname())
	if delay, known := r.Context().Value(httpctx.CrawlDelay{}).(time.Duration); known {
		if delay <= 0 {
			delay = -1 // cancels an earlier one
		}
		t.hosts.SetHost(host, scheduler.Host{Delay: delay})
	}
	began, sent := time.Now(), r
	for first := true; ; first = false {
		x := &exchange{transport: t, ctx: r.Context(), host: host, began: began}
		x.mayRetry = first && (r.Body == nil || r.Body == http.NoBody || r.GetBody != nil)
		if err := x.wait(); err != nil {
			return refuse(sent, err)
		}
		resp, err := x.send(sent)
		if err == nil {
			return x.begin(resp), nil
		}
		if !x.again {
			return nil, x.fail(err)
		}
		// The address was busy. It is known now, so the next lease waits for it.
		x.end(scheduler.Outcome{Skipped: true})
		if r.GetBody != nil {
			sent = r.Clone(r.Context())
			if sent.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// hostOf returns the one form of a host's name, as it is sent. net/http refuses to send names that
// have none.
func hostOf(name string) string {
	host, err := weburl.HostName(name)
	if err != nil {
		return strings.ToLower(name)
	}
	return host
}

// refuse ends a request that is not sent. It closes the body, as the contract of RoundTripper requires.
func refuse(r *http.Request, why error) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, why
}

// An exchange is a request with its response, and the body of that response.
type exchange struct {
	io.ReadCloser
	transport *Transport
	ctx       context.Context // of the request
	host      string
	began     time.Time // when the request came
	mayRetry  bool      // on another connection

	cancel  context.CancelFunc // ends the call of the RoundTripper below
	start   time.Time          // when the request could be written
	dialed  string             // host:port of the server or the proxy of the connection
	written atomic.Bool        // a request was, on this connection or an earlier one
	again   bool               // the request was given up to be sent again with another lease
	refused error              // why no lease could be had for the connection; nil if there is one

	mu      sync.Mutex
	lease   scheduler.Lease[struct{}]
	arrived time.Time // at the latest, by Transport.Arrival; zero if unknown
	outcome scheduler.Outcome
	ended   bool
}

// wait takes a lease.
func (x *exchange) wait() error {
	ctx := x.ctx
	if most := x.transport.MaxWait; most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, x.began.Add(most))
		defer cancel()
	}
	lease, err := x.transport.hosts.Wait(ctx, x.host)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lease, x.start = *lease, time.Now()
	return nil
}

// send calls the RoundTripper below. If that panics or returns nothing, the lease ends here, and the
// host is not blamed.
func (x *exchange) send(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if resp == nil && err == nil {
			err = errNothing
			x.end(scheduler.Outcome{Start: time.Now()})
		}
	}()
	return x.transport.base.RoundTrip(x.traced(r))
}

var errNothing = errors.New(
	"schedulerhttp: the RoundTripper below returned neither a response nor an error")

// fail ends an exchange without a response, and returns its error.
func (x *exchange) fail(err error) error {
	if x.refused != nil {
		x.end(scheduler.Outcome{Skipped: true})
		return x.refused
	}
	o := Outcome(x.start, nil, err)
	if x.ctx.Err() == context.Canceled {
		o.Failed = false // err is the cause that the caller gave
	}
	x.end(o)
	return err
}

// traced returns a copy of a request that reports its progress to the exchange.
func (x *exchange) traced(r *http.Request) *http.Request {
	trace := &httptrace.ClientTrace{
		GetConn:      func(hostPort string) { x.dialed = hostPort },
		GotConn:      x.gotConn,
		WroteHeaders: func() { x.written.Store(true) },
	}
	if x.transport.Arrival > 0 {
		trace.WroteRequest = x.wroteRequest
	}
	ctx, cancel := context.WithCancel(r.Context())
	x.cancel = cancel
	return r.WithContext(httptrace.WithClientTrace(ctx, trace))
}

// gotConn is called when there is a connection for the request, which is written as soon as gotConn
// returns. So it waits until the server at the other end may be visited, or else gives the
// connection up.
//
// net/http calls it again if it repeats a request, because the connection was dead or an HTTP/2
// server wants that. The request before may have arrived, so the next one needs a lease of its own.
//
// If the wait would be for a new connection, that is given up and the whole request tried again, once:
// the server need not keep it open during the wait. A connection that other requests may use, and the
// one after that, are kept.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.start = time.Now()
	addr := x.addrOf(info.Conn)
	leased := true
	if x.written.Swap(false) {
		x.lease.Done(scheduler.Outcome{Start: x.start})
		leased = false
	}
	for !leased || addr.IsValid() && !x.lease.Reach(addr) {
		if x.mayRetry && !info.Reused {
			x.again = true
			x.giveUp(info.Conn)
			return
		}
		x.lease.Done(scheduler.Outcome{Skipped: true})
		if x.refused = x.wait(); x.refused != nil {
			x.giveUp(info.Conn)
			return
		}
		leased = true
	}
}

// giveUp makes sure that the request is not written. HTTP/2 sends nothing for a context that has
// ended, and its connection may have other requests. HTTP/1 only stops at a closed connection.
func (x *exchange) giveUp(conn net.Conn) {
	x.cancel()
	if secure, ok := conn.(*tls.Conn); !ok || secure.ConnectionState().NegotiatedProtocol != "h2" {
		_ = conn.Close()
	}
}

// addrOf returns the address of the server at the other end of a connection, if known.
func (x *exchange) addrOf(conn net.Conn) netip.Addr {
	if host, _, err := net.SplitHostPort(x.dialed); err == nil && hostOf(host) != x.host {
		return netip.Addr{} // a proxy
	}
	switch remote := conn.RemoteAddr().(type) {
	case nil: // as httputil.DumpRequestOut has it
		return netip.Addr{}
	case *net.TCPAddr:
		return remote.AddrPort().Addr().Unmap()
	default:
		addr, _ := netip.ParseAddrPort(remote.String())
		return addr.Addr().Unmap()
	}
}

// wroteRequest tells the scheduler when the request reaches the server.
func (x *exchange) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.arrived = time.Now().Add(x.transport.Arrival)
	x.lease.Arrived(x.arrived)
}

// begin records the head of a response, and returns the response with a body that ends the lease.
func (x *exchange) begin(resp *http.Response) *http.Response {
	o := Outcome(x.start, resp, nil)
	o.Failed = x.transport.Failure != nil && x.transport.Failure(resp)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.arrived.IsZero() && x.arrived.Before(o.Start) {
		o.Start = x.arrived
	}
	x.lease.Arrived(o.Start)
	x.outcome = o
	if resp.Body == nil || resp.Body == http.NoBody {
		x.finish()
		return resp
	}
	x.ReadCloser = resp.Body
	resp.Body = x
	if w, ok := x.ReadCloser.(io.Writer); ok { // after a switch of protocols
		resp.Body = struct {
			*exchange
			io.Writer
		}{x, w}
	}
	return resp
}

// Read reads the body. Its end ends the visit.
func (x *exchange) Read(p []byte) (n int, err error) {
	n, err = x.ReadCloser.Read(p)
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !errors.Is(err, io.EOF) && x.ctx.Err() == nil {
			x.outcome.Failed = true
		}
		x.finish()
	}
	return n, err
}

// Close closes the body and ends the visit.
func (x *exchange) Close() error {
	err := x.ReadCloser.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.finish()
	return err
}

// end ends the lease.
func (x *exchange) end(o scheduler.Outcome) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.outcome = o
	x.finish()
}

// finish requires that x.mu is held.
func (x *exchange) finish() {
	if !x.ended {
		x.ended = true
		x.cancel()
		x.lease.Done(x.outcome)
	}
}
