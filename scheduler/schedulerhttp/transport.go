package schedulerhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// crawlDelayKey is the key under which the context of a request carries the Crawl-delay of its
// host, a time.Duration. An unnamed struct type is the same type in every package, so that the
// layer that knows the delay and the layer that keeps it need not import each other.
type crawlDelayKey = struct{ RobotsCrawlDelay struct{} }

// Transport is an http.RoundTripper that waits until the host may be visited and then calls another
// RoundTripper. Its methods are safe for concurrent use.
type Transport struct {
	// Arrival bounds the time from writing a request until it reaches the server. If it is set, the
	// delay counts from then, or from the first byte of the response if that is earlier. With
	// MaxPerAddr of 2, the next request then need not wait for a slow page. Arrival has to include
	// the jitter of the network: if a request takes longer, the next one may come too early by the
	// difference. 0 means unknown: only the first byte counts. Set it before the first request.
	Arrival time.Duration

	base  http.RoundTripper
	hosts *scheduler.Scheduler[struct{}]
}

// NewTransport returns a Transport on top of base; nil means http.DefaultTransport. It has no
// goroutines in the background and need not be closed.
func NewTransport(base http.RoundTripper, o scheduler.Options) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{base: base, hosts: scheduler.New[struct{}](o)}
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
	if delay, known := r.Context().Value(crawlDelayKey{}).(time.Duration); known {
		if delay <= 0 {
			delay = -1 // cancels an earlier one
		}
		t.hosts.SetHost(host, scheduler.Host{Delay: delay})
	}
	sent := r
	for first := true; ; first = false {
		x := &exchange{transport: t, ctx: r.Context(), host: host}
		x.mayRetry = first && (r.Body == nil || r.Body == http.NoBody || r.GetBody != nil)
		if err := x.wait(); err != nil {
			return refuse(sent, err)
		}
		resp, err := x.send(sent)
		if err == nil {
			return x.begin(resp), nil
		}
		if !x.busy {
			o := Outcome(x.start, nil, err)
			if r.Context().Err() == context.Canceled {
				o.Failed = false // err is the cause that the caller gave
			}
			x.end(o)
			return nil, err
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

// hostOf returns the canonical spelling of a host name: lower case, without the final dot.
func hostOf(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

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
	mayRetry  bool // on another connection

	start  time.Time // when the request could be written
	dialed string    // host:port of the server or the proxy of the connection
	busy   bool      // the connection was closed, because its address is busy

	mu      sync.Mutex
	lease   scheduler.Lease[struct{}]
	arrived time.Time // at the latest, by Transport.Arrival; zero if unknown
	outcome scheduler.Outcome
	ended   bool
}

// wait takes a lease.
func (x *exchange) wait() error {
	lease, err := x.transport.hosts.Wait(x.ctx, x.host)
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

// traced returns a copy of a request that reports its progress to the exchange.
func (x *exchange) traced(r *http.Request) *http.Request {
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) { x.dialed = hostPort },
		GotConn: x.gotConn,
	}
	if x.transport.Arrival > 0 {
		trace.WroteRequest = x.wroteRequest
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
}

// gotConn waits until the server at the other end may be visited, before the request is written. If
// it may not be visited yet, a new connection is closed, so that the server need not keep it open
// during the wait. A connection that other requests use, and one made after a close, is kept open.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.start = time.Now()
	addr := x.addrOf(info.Conn)
	if !addr.IsValid() || x.lease.Reach(addr) {
		return
	}
	if x.mayRetry && !info.Reused && !x.busy {
		x.busy = true
		_ = info.Conn.Close()
		return
	}
	for x.busy = false; !x.lease.Reach(addr); {
		x.lease.Done(scheduler.Outcome{Skipped: true})
		if x.wait() != nil {
			return // the context has ended, and so has the request
		}
	}
}

// addrOf returns the address of the server at the other end of a connection, if known.
func (x *exchange) addrOf(conn net.Conn) netip.Addr {
	if host, _, err := net.SplitHostPort(x.dialed); err == nil && !sameHost(host, x.host) {
		return netip.Addr{} // a proxy
	}
	remote := conn.RemoteAddr()
	if tcp, ok := remote.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	addr, _ := netip.ParseAddrPort(remote.String())
	return addr.Addr().Unmap()
}

// sameHost reports whether a connection for a host may be to a dialed name. International names are
// dialed in their ASCII form.
func sameHost(dialed, host string) bool {
	isASCII := strings.IndexFunc(host, func(r rune) bool { return r >= 0x80 }) < 0
	return hostOf(dialed) == host || !isASCII && strings.Contains(dialed, "xn--")
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
		x.lease.Done(x.outcome)
	}
}
