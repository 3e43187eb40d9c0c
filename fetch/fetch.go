package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpfield"
	"github.com/spinneret-go/spinneret/internal/httpwire"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Client fetches URLs. Its methods are safe for concurrent use.
//
// It keeps idle connections within its Options: see MaxIdle about those of HTTP/2. For each, net/http runs
// two goroutines, which CloseIdleConnections or IdleTimeout ends.
type Client struct {
	opts      Options // with its defaults filled in
	tlsConfig *tls.Config
	transport *http.Transport
	tripper   http.RoundTripper // the transport, or what the caller has put around it
	header    http.Header       // of each Get; shared by all, and so never changed
	complete  http.Header       // for the requests of an http.Client that lack them; likewise
	buffers   buffers
	budget    *budget // nil means that there is no limit
	names     bool    // a proxy looks names up
}

// streamBuffer is how much of a body an HTTP/2 server may send before anybody reads it. The default
// is 4 MiB.
const streamBuffer = 1 << 20

// writeBuffer is the size of a connection's buffer for requests. Few are longer; those take two
// writes.
const writeBuffer = 2 << 10

// New returns a Client, or an error that says which option is wrong.
func New(opts Options) (*Client, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	opts.Dial = untraced(opts.Dial)
	c := &Client{opts: opts, tlsConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if opts.TLSConfig != nil {
		c.tlsConfig = opts.TLSConfig.Clone()
	}
	// The transport would add these only to its own handshakes.
	if opts.HTTP1 {
		c.tlsConfig.NextProtos = []string{"http/1.1"}
	} else if c.tlsConfig.NextProtos == nil {
		c.tlsConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	c.header, c.complete = c.opts.headers()
	// Two fields are left out on purpose. Proxy: the one of the environment would dial for us.
	// MaxConnsPerHost: the scheduler decides how many requests a host gets, and a queue in here
	// would use up the time of a Get.
	c.transport = &http.Transport{
		DialContext:            c.dialPlain,
		DialTLSContext:         c.dialTLS,
		DisableCompression:     true, // decode has guards; the transport's decoder has none
		DisableKeepAlives:      opts.MaxIdle < 0 || opts.MaxIdlePerHost < 0,
		MaxIdleConns:           max(opts.MaxIdle, 0),
		MaxIdleConnsPerHost:    opts.MaxIdlePerHost,
		IdleConnTimeout:        IdleTimeout,
		MaxResponseHeaderBytes: opts.MaxHeader,
		WriteBufferSize:        writeBuffer,
		ExpectContinueTimeout:  time.Second, // as http.DefaultTransport
		Protocols:              new(http.Protocols),
		HTTP2:                  http2Config(opts.HeadTimeout),
	}
	c.transport.Protocols.SetHTTP1(true)
	c.transport.Protocols.SetHTTP2(!opts.HTTP1)
	if opts.Proxy != "" {
		if err := c.useProxy(); err != nil {
			return nil, err
		}
	}
	if opts.MaxMemory > 0 {
		c.budget = newBudget(opts.MaxMemory, opts.MaxBody)
	}
	if c.tripper = (bottom{c.transport}); opts.Wrap != nil {
		c.tripper = opts.Wrap(c.tripper)
	}
	return c, nil
}

// http2Config returns the settings of HTTP/2. A connection over which nothing comes is asked with a
// ping and closed if it is dead, about when a request over it runs into HeadTimeout. Otherwise each
// request would get that connection, since it serves many at a time.
func http2Config(head time.Duration) *http.HTTP2Config {
	if head < 0 {
		head = DefaultHeadTimeout
	}
	return &http.HTTP2Config{
		MaxReceiveBufferPerStream: streamBuffer,
		SendPingTimeout:           max(head/3, time.Second),
		PingTimeout:               max(head/2, time.Second),
	}
}

// Get requests url once. A response of any status is a Response, and so is a redirect, which is not
// followed. Everything else is an [*Error].
func (c *Client) Get(ctx context.Context, url string) (*Response, error) {
	return c.Do(ctx, Request{URL: url})
}

// Do sends a request that needs more than a URL. Its results are those of Get.
func (c *Client) Do(ctx context.Context, request Request) (*Response, error) {
	// Do waits for servers, so its stack frame and those below are kept small: stacks are a third
	// of the memory of a fetch in flight. Hence the functions that it is cut into.
	x := newExchange(ctx)
	x.pin = request.Addr.Unmap()
	defer x.end()
	resp, r, err := c.open(x, &request)
	if err != nil {
		err.URL = withoutPassword(request.URL)
		return nil, err
	}
	defer resp.Body.Close()
	c.readBodies(x, resp, request.MaxBody, r)
	// Half a page is useful if the server is to blame. A caller who leaves wants none of it, and
	// must not mistake it for the server's doing.
	if ctx.Err() != nil && (r.RawCut != Whole || r.Truncated == CutTime || r.Truncated == CutMemory) {
		c.Release(r)
		err := x.cut(Canceled, context.Cause(ctx))
		err.URL, err.left = withoutPassword(request.URL), true
		return nil, err
	}
	x.describe(r)
	return r, nil
}

// open sends request and waits for the head of the response.
func (c *Client) open(x *exchange, request *Request) (*http.Response, *Response, *Error) {
	req, url, err := c.prepare(x.ctx, request)
	if err != nil {
		return nil, nil, err
	}
	x.pinned = req.URL.Hostname()
	resp, err := c.send(x, req)
	if err != nil {
		return nil, nil, err
	}
	return resp, c.answer(x, req, resp, url), nil
}

// answer returns what the head of resp says.
func (c *Client) answer(
	x *exchange, req *http.Request, resp *http.Response, url string,
) *Response {
	c.keepCookies(resp, url)
	r := &Response{URL: url, Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header}
	r.setHeads(x, req, resp)
	r.Location = location(resp, url)
	came := x.firstByte()
	r.RetryAfter = min(httpfield.RetryAfter(resp.Header, came), maxRetryAfter)
	r.Fresh = min(max(httpfield.FreshnessOf(resp.Header, came).Left, 0), maxRetryAfter)
	return r
}

// send makes the round trip of req, which the transport may change.
//
// The transport and not an http.Client sends it: that one follows redirects, keeps cookies and
// sends the credentials of a URL.
func (c *Client) send(x *exchange, req *http.Request) (*http.Response, *Error) {
	x.watch.begin(&c.opts, x.start, x.cancel)
	resp, err := c.roundTrip(req)
	if err != nil {
		return nil, x.failure(err, &c.opts)
	}
	return resp, nil
}

// Release takes the bodies from r and recycles their memory: neither Raw nor Body, nor any slice of
// them, may be used afterwards. It also returns their share of Options.MaxMemory. Without Release
// that happens when r is garbage-collected, which may be late. Release each response as you would
// close a file; a second time does nothing, also for a copy of r, which another goroutine may release
// meanwhile. A nil r, as of a Get that failed, is ignored.
func (c *Client) Release(r *Response) {
	if r == nil {
		return
	}
	if m := r.memory; m != nil && m.released.CompareAndSwap(false, true) {
		if m.held != nil {
			m.held.shrink(0)
		}
		for _, buf := range m.buffers {
			c.buffers.put(buf)
		}
		m.held, m.buffers = nil, [2][]byte{}
	}
	r.Raw, r.Body = nil, nil
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

var errSwitched = errors.New("server switched protocols unasked")

func (c *Client) roundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.tripper.RoundTrip(req)
	if resp == nil && err == nil {
		err = errors.New("Options.Wrap returned neither a response nor an error")
	}
	if err != nil {
		return nil, err
	}
	if resp.Body == nil { // Options.Wrap answered by itself
		resp.Body = http.NoBody
	}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		// The body would be the naked connection, without an end.
		err = errSwitched
	case resp.StatusCode == http.StatusProxyAuthRequired && c.viaProxy(req.URL.Scheme):
		err = proxyError(errors.New(resp.Status))
	case countFields(resp.Header) > MaxFields:
		// Those of HTTP/2 come over no wire of ours. net/http counts 32 bytes more for each
		// against MaxHeader, so that there cannot be too many to be counted here.
		err = httpwire.ErrFields
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func countFields(header http.Header) (n int) {
	for _, values := range header {
		n += len(values)
	}
	return n
}

// location returns where a redirect leads, or "" if resp is not a redirect or names no target.
func location(resp *http.Response, from string) string {
	to := resp.Header.Get("Location")
	// A 304 may repeat the fields of the page, and a 201 names what was created: neither is a
	// redirect.
	redirect := 300 <= resp.StatusCode && resp.StatusCode < 400 &&
		resp.StatusCode != http.StatusNotModified
	if !redirect || to == "" {
		return ""
	}
	base, err := weburl.Parse(from, nil)
	if err != nil {
		return ""
	}
	u, err := weburl.Parse(to, &base)
	if err != nil {
		return ""
	}
	u.Username, u.Password = "", ""
	return string(u.Append(nil, false))
}
