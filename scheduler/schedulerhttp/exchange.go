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
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/spinneret-go/spinneret/internal/upload"
	"github.com/spinneret-go/spinneret/scheduler"
)

// An exchange is one attempt at a request, under one lease, with its response and the body of that.
type exchange struct {
	io.ReadCloser // of the response
	transport     *Transport
	req           *http.Request // of the caller
	host          string
	leased        time.Time     // when it got the lease
	waited        time.Duration // for leases until then
	body          *body         // of the request; nil if there is none
	upload        upload.Watch
	cancel        context.CancelFunc // ends the call of the RoundTripper below

	// A layer below may make several attempts, one after the other or at the same time.
	mu       sync.Mutex
	lease    turn
	named    string     // host:port of the server or the proxy of the next connection
	dialing  bool       // the RoundTripper below looks for a connection
	reaching bool       // and has looked the host up for it; not if it connects to a proxy
	dialed   netip.Addr // of the server, if a connection to it was made
	conn     net.Conn   // the one that may be written to; nil if there is none
	granted  bool       // the lease is used, since something may have been written
	plain2   bool       // connections without TLS may be of HTTP/2; set by traced
	http1    bool       // an attempt was written with HTTP/1, if plain2 is set
	refused  []net.Conn // of attempts that were given up, which others may use; see giveUp
	again    bool       // an attempt was given up, to be made with another lease
	start    time.Time  // when the request could be written
	arrived  time.Time  // at the latest, by Transport.Arrival; zero if unknown
	outcome  scheduler.Outcome
	closed   bool // the caller has closed the body
	ended    bool
}

// send calls the RoundTripper below. If that panics or returns nothing, the lease ends here, and
// the host is not blamed.
func (x *exchange) send(r *http.Request) (resp *http.Response, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	x.cancel = cancel
	defer func() {
		if resp == nil && err == nil {
			err = errNothing
			x.end(scheduler.Outcome{Start: time.Now(), Unknown: true})
		}
	}()
	sent := r.WithContext(x.traced(ctx))
	rename(sent, x.host)
	if x.body != nil {
		sent.Body = x.body
		x.upload.Attach(sent)
	}
	resp, err = x.transport.base.RoundTrip(sent)
	if resp != nil {
		resp.Request = httpctx.RequestOf(resp, r, nil)
	}
	return resp, err
}

// rename sends a request to the host that it has waited for, or what is said of another name would be said of
// that: net/http has other tables for international names, and leaves escapes and addresses in other
// notations as they are. It requires that r is a copy.
func rename(r *http.Request, host string) {
	name := r.URL.Hostname()
	same := strings.EqualFold(strings.TrimSuffix(name, "."), host) || strings.Contains(name, ":")
	if same && !isForeign(name) {
		return
	}
	u := *r.URL
	u.Host = host
	if port := r.URL.Port(); port != "" {
		u.Host += ":" + port
	}
	if r.Host == r.URL.Host {
		r.Host = u.Host
	}
	r.URL = &u
}

// isForeign reports whether a name is not in ASCII.
func isForeign(name string) bool {
	return strings.ContainsFunc(name, func(c rune) bool { return c >= 0x80 })
}

var errNothing = errors.New(
	"schedulerhttp: the RoundTripper below returned neither a response nor an error")

// givenUp reports whether the request is to be sent again, and whether it may have been written.
func (x *exchange) givenUp() (again, granted bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.again, x.granted
}

// fail ends an exchange without a response, and returns its error.
func (x *exchange) fail(err error) error {
	x.mu.Lock()
	o := Outcome(x.start, nil, err)
	switch left := x.left(); {
	case x.upload.Failed() || x.transport.kept.isStrange(x.req):
		o.Failed = false
	case (x.granted || x.dialing && x.reaching) && errors.Is(left, context.DeadlineExceeded):
		o.Failed, o.Skipped = !x.hurried(), false // whether err is that of a timeout or of a caller who left
	case left != nil || !x.granted && !x.dialing && !neterr.Network(err):
		o.Failed = false // err is the cause that the caller gave, or a layer below has refused the request
	}
	o.Skipped = o.Skipped && !x.granted
	o.Unknown = !o.Failed && !o.Skipped
	granted, addr := x.granted, x.dialed
	x.mu.Unlock()
	if !granted && addr.IsValid() {
		x.lease.Reach(addr) // the handshake has failed, which was a visit as well
	}
	x.end(o)
	return err
}

// enoughTime is how long a host may take to answer in any case before a deadline is its failure.
const enoughTime = 5 * time.Second

// hurried reports whether the wait has used up the time of the request, and left the host too little: less than
// that, and than the wait itself. That says nothing of the host, of which too many want something.
func (x *exchange) hurried() bool {
	deadline, limited := x.req.Context().Deadline()
	return limited && deadline.Sub(x.leased) < min(x.waited, enoughTime)
}

// left returns why the caller no longer waits; nil while it does.
func (x *exchange) left() error {
	//lint:ignore SA1019 an http.Client sets it
	return httpctx.Ended(x.req.Context(), x.req.Cancel)
}

// traced returns a context in which the RoundTripper below reports its progress to x, and then to
// the trace of the caller. HTTP/1 also reports that it has written an attempt which was given up,
// since its writer finds out later that the connection is closed. Layers above would believe that
// the host was asked, so they do not hear that.
func (x *exchange) traced(ctx context.Context) context.Context {
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.named, x.dialing = hostPort, true
			x.reaching = x.direct() // dialers of others may report no more
		},
		DNSStart:     func(httptrace.DNSStartInfo) { x.lookedUp(false) },
		DNSDone:      func(done httptrace.DNSDoneInfo) { x.lookedUp(done.Err == nil) },
		ConnectStart: func(_, _ string) { x.lookedUp(true) },
		ConnectDone:  x.connectDone,
		GotConn:      x.gotConn,
	}
	if x.plain2 = usesPlainHTTP2.Load(); x.plain2 {
		trace.WroteHeaderField = x.wroteField
	}
	if x.transport.Arrival > 0 {
		trace.WroteRequest = x.wroteRequest
	}
	caller := httptrace.ContextClientTrace(ctx)
	if caller == nil {
		return httptrace.WithClientTrace(ctx, trace)
	}
	rest := *caller
	if wrote := rest.WroteHeaders; wrote != nil {
		rest.WroteHeaders = func() {
			if x.wasGranted() {
				wrote()
			}
		}
	}
	if wrote := rest.WroteRequest; wrote != nil {
		rest.WroteRequest = func(info httptrace.WroteRequestInfo) {
			if x.wasGranted() {
				wrote(info)
			}
		}
	}
	return httptrace.WithClientTrace(httpctx.WithTrace(ctx, &rest), trace)
}

// lookedUp records whether the host has been looked up.
func (x *exchange) lookedUp(done bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reaching = done && x.direct()
}

// connectDone records the address of a server, which gotConn does not get if the TLS handshake fails.
func (x *exchange) connectDone(_, addr string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if to, _ := netip.ParseAddrPort(addr); err == nil && x.direct() {
		x.dialed = to.Addr().Unmap()
	}
}

// direct reports whether the next connection is one to the host, not to a proxy. It requires that x.mu
// is held.
func (x *exchange) direct() bool {
	host, _, _ := net.SplitHostPort(x.named)
	return hostOf(host) == x.host
}

func (x *exchange) wasGranted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.granted
}

// gotConn is called when there is a connection for the request, which is written as soon as gotConn
// returns. Unless the server at the other end may be visited now, gotConn gives the attempt up, and
// the request waits for another lease. It does not wait itself: it would hold a connection that
// other requests, with leases, may be waiting for.
//
// It is called once more if a layer below repeats a request, because the connection was dead or an
// HTTP/2 server wants that, or sends it twice to get the faster answer. The request before may have
// arrived, so the next one needs a lease of its own.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dialing = false
	if !x.again && !x.granted && x.mayVisit(x.addrOf(info.Conn)) {
		x.granted, x.conn, x.start = true, info.Conn, time.Now()
		return
	}
	if !x.granted {
		x.body.hold()
	}
	x.again = true
	x.giveUp(info)
}

// mayVisit reports whether the lease is outstanding, and an address may be visited if it is known.
func (x *exchange) mayVisit(addr netip.Addr) bool {
	return x.lease.Held() && (!addr.IsValid() || x.lease.Reach(addr))
}

// giveUp makes sure that the request is not written to a connection. HTTP/2 sends nothing for a
// context that has ended, and its connection may have other requests; so with HTTP/3. HTTP/1 only stops
// at a closed connection; if an earlier attempt is still under way on another one, that goes on. With
// HTTP/2 it ends as well, as it has the same context: so if a layer below sends everything twice, each lease
// leads to the same.
//
// HTTP/1 sends a long head piece by piece, so its connection is closed here, before the first. One
// that may be of HTTP/2 without TLS, with requests of others, stays open: the context ends, and
// wroteField closes the connection if it turns out to be of HTTP/1.
func (x *exchange) giveUp(info httptrace.GotConnInfo) {
	conn := info.Conn
	own := isKey(conn) && conn == x.conn
	shared, plain := isShared(conn), x.mayBePlainHTTP2(info)
	switch {
	case conn == nil:
		x.cancel()
	case shared || plain:
		x.cancel()
		if plain {
			x.refused = append(x.refused, conn)
		}
	default:
		if own || !x.granted {
			x.cancel()
		}
		_ = conn.Close()
	}
}

// isShared reports whether a connection is known to be one of HTTP/2, or of HTTP/3, which panics if
// anybody closes it.
func isShared(conn net.Conn) bool {
	if secure, ok := conn.(interface{ ConnectionState() tls.ConnectionState }); ok {
		return secure.ConnectionState().NegotiatedProtocol == "h2"
	}
	return isQUIC(conn)
}

// isQUIC reports whether a connection is one of HTTP/3, which alone is over UDP.
func isQUIC(conn net.Conn) bool {
	if conn == nil {
		return false
	}
	_, ok := conn.RemoteAddr().(*net.UDPAddr)
	return ok
}

// usesPlainHTTP2 is set by the first response over HTTP/2 without TLS. It is of the process, since
// Transports with nothing else in common may have the same one below.
var usesPlainHTTP2 atomic.Bool

// mayBePlainHTTP2 reports whether others may use a connection, with HTTP/2 and without TLS. With HTTP/1,
// one that is neither new nor idle was handed over by a request that has just ended.
func (x *exchange) mayBePlainHTTP2(info httptrace.GotConnInfo) bool {
	_, secure := info.Conn.(interface{ ConnectionState() tls.ConnectionState })
	return x.plain2 && !x.http1 && info.Reused && !info.WasIdle && !secure && !isQUIC(info.Conn)
}

// wroteField closes connections that were given up and are of HTTP/1. That reports its first field while
// the request line, unless that is long, is in a buffer. The first fields of HTTP/2 begin with a colon,
// and it reports none if the context has ended.
func (x *exchange) wroteField(name string, _ []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.http1 = x.http1 || name == "Host"; !x.http1 {
		return
	}
	for _, conn := range x.refused {
		_ = conn.Close()
	}
	x.refused = nil
}

// addrOf returns the address of the server at the other end of a connection, if known.
func (x *exchange) addrOf(conn net.Conn) netip.Addr {
	if conn == nil {
		return netip.Addr{}
	}
	host, _, err := net.SplitHostPort(x.named)
	if x.transport.kept.isProxy(conn, err == nil && hostOf(host) != x.host) {
		return netip.Addr{}
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
	x.mu.Lock()
	defer x.mu.Unlock()
	if info.Err != nil || !x.granted {
		return
	}
	x.arrived = time.Now().Add(x.transport.Arrival)
	x.lease.Arrived(x.arrived)
}

// begin records the head of a response, and returns the response with a body that ends the lease.
func (x *exchange) begin(resp *http.Response, r *http.Request) *http.Response {
	if resp.ProtoMajor == 2 && resp.TLS == nil {
		usesPlainHTTP2.Store(true)
	}
	x.transport.kept.answered(x.req)
	o := Outcome(x.started(), resp, nil)
	if failure := x.transport.Failure; failure != nil {
		called := false
		defer func() {
			if !called { // it has panicked
				_ = resp.Body.Close()
				x.end(o)
			}
		}()
		o.Failed, called = failure(resp), true
		o.Unknown = o.Unknown && !o.Failed
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.arrived.IsZero() && x.arrived.Before(o.Start) {
		o.Start = x.arrived
	}
	x.lease.Arrived(o.Start)
	x.outcome = o
	switched := resp.StatusCode == http.StatusSwitchingProtocols // its body is a connection, for as long as the caller likes
	if resp.Body == nil || resp.Body == http.NoBody || switched {
		x.finish()
		return resp
	}
	x.ReadCloser = resp.Body
	resp.Body = x
	return resp
}

func (x *exchange) started() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.start
}

// Read reads the body. Its end ends the visit.
func (x *exchange) Read(p []byte) (n int, err error) {
	n, err = x.ReadCloser.Read(p)
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !errors.Is(err, io.EOF) && x.left() == nil && !x.closed && !neterr.Local(err) {
			x.outcome.Failed = true
		}
		x.finish()
	}
	return n, err
}

// Close closes the body and ends the visit.
func (x *exchange) Close() error {
	x.mu.Lock()
	x.closed = true // a Read that fails now fails because of that
	x.mu.Unlock()
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
	x.cancel() // there is no response
}

// finish requires that x.mu is held.
func (x *exchange) finish() {
	if x.ended {
		return
	}
	x.ended = true
	x.upload.Then(x.cancel) // over HTTP/2, a server may answer before the body of the request is sent
	x.conn = nil            // the caller may keep the response
	x.lease.Done(x.outcome)
}
