package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Client gets URLs. Its methods are safe for concurrent use.
//
// It keeps connections for next requests, within its Options, and net/http runs two goroutines for
// each; CloseIdle ends them, and so does IdleTimeout.
type Client struct {
	opts      Options // with its defaults filled in
	tlsConfig *tls.Config
	transport *http.Transport
	tripper   http.RoundTripper // the transport, or what the caller has put around it
	codecs    map[string]*codec
	header    http.Header // of each request; shared by all, and so never changed
	buffers   buffers
}

// New returns a Client, or an error that says which option cannot be.
func New(opts Options) (*Client, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	c := &Client{opts: opts, tlsConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if opts.TLSConfig != nil {
		c.tlsConfig = opts.TLSConfig.Clone()
	}
	// The transport would add these only to a handshake of its own.
	if c.tlsConfig.NextProtos == nil {
		c.tlsConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	codecs, codings := newCodecs(opts.Decoders)
	c.codecs, c.header = codecs, opts.header(codings)
	// What is left out matters, too. Proxy: a proxy would do the dialling, and Reach would check
	// the proxy's address. MaxConnsPerHost: how many requests a host gets is for the scheduler to
	// say, and a queue in here would let a Get's time run out unseen.
	c.transport = &http.Transport{
		DialContext:            c.dialPlain,
		DialTLSContext:         c.dialTLS,
		DisableCompression:     true, // decode has guards; the transport's decoder has none
		DisableKeepAlives:      opts.MaxIdle < 0 || opts.MaxIdlePerHost < 0,
		MaxIdleConns:           max(opts.MaxIdle, 0),
		MaxIdleConnsPerHost:    opts.MaxIdlePerHost,
		IdleConnTimeout:        max(opts.IdleTimeout, 0),
		MaxResponseHeaderBytes: opts.MaxHeader,
		Protocols:              new(http.Protocols),
		// Without this a server may push 4 MiB into a stream that nobody reads.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 20},
	}
	c.transport.Protocols.SetHTTP1(true)
	c.transport.Protocols.SetHTTP2(true)
	if c.tripper = c.transport; opts.Wrap != nil {
		c.tripper = opts.Wrap(c.transport)
	}
	return c, nil
}

// Get requests url once. A response of any status is a Response, also a redirect, whose Location is
// not followed. Everything else is an [*Error].
func (c *Client) Get(ctx context.Context, url string, v Validators) (*Response, error) {
	x := &exchange{late: ConnectTimeout, timing: Timing{Start: time.Now()}}
	t, err := parseTarget(url)
	if err != nil {
		return nil, &Error{Kind: BadURL, URL: url, Err: err}
	}
	parent := ctx
	ctx, cancel := context.WithCancelCause(x.attach(parent))
	defer cancel(nil)
	x.watch.begin(&c.opts, x.timing.Start, cancel)
	defer x.watch.end()
	// The transport and not an http.Client: that one follows redirects, keeps cookies and sends
	// the credentials of a URL.
	req := c.request(ctx, &t, v)
	c.addCookies(req, t.url)
	resp, err := c.roundTrip(req)
	if err != nil {
		e := x.failure(ctx, parent, err, c.opts.MaxHeader)
		e.URL = url
		return nil, e
	}
	defer resp.Body.Close()
	c.keepCookies(resp, t.url)
	r := &Response{URL: t.url, Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header}
	r.setHeads(x, req, resp)
	r.Raw, r.spool, r.RawCut = c.readBody(ctx, resp, &x.watch)
	// Half a page is of use when the server is to blame. A caller who leaves wants none of it,
	// and must not take it for the server's doing.
	if parent.Err() != nil && r.RawCut != Whole {
		r.spool.close()
		return nil, &Error{Kind: Canceled, URL: url, Addr: x.addr, Err: context.Cause(parent)}
	}
	x.stamp(&x.timing.Done)
	x.describe(r)
	cut := r.RawCut
	if r.spool != nil {
		cut = CutSpool
	}
	r.Body, r.Truncated = c.decode(r.Raw, cut, resp.Header.Values("Content-Encoding"))
	r.Location = location(resp, &t.parsed)
	came := r.Timing.FirstByte
	if came.IsZero() { // what Options.Wrap has put there answered by itself
		came = r.Timing.Done
	}
	r.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), came)
	return r, nil
}

// Release gives the memory of r's bodies to the Gets that follow, and takes them from r: neither
// Raw nor Body, nor a part of one of them, nor what was spooled may be used afterwards. Nobody needs
// to call it, but a crawler that does saves its collector the work for them.
func (c *Client) Release(r *Response) {
	r.spool.close()
	r.spool = nil
	if len(r.Raw) > 0 && (len(r.Body) == 0 || &r.Raw[0] != &r.Body[0]) {
		c.buffers.put(r.Body)
	}
	c.buffers.put(r.Raw)
	r.Raw, r.Body = nil, nil
}

// CloseIdle closes the connections that no Get uses at the moment.
func (c *Client) CloseIdle() { c.transport.CloseIdleConnections() }

var errSwitched = errors.New("server switched protocols unasked")

func (c *Client) roundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.tripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body would be the naked connection, without an end.
		err = errSwitched
	} else if countFields(resp.Header) > c.opts.MaxFields {
		// Those of HTTP/2 come over no wire of ours. net/http counts 32 bytes more for each
		// against MaxHeader, so that there cannot be too many to be counted here.
		err = errFields
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

// request builds the request for t. Its header is the shared one where that will do.
func (c *Client) request(ctx context.Context, t *target, v Validators) *http.Request {
	header := c.header
	if v != (Validators{}) || c.opts.Jar != nil {
		header = maps.Clone(header)
	}
	// A server's own bytes come back here, so they are checked like any input.
	if v.ETag != "" && isFieldValue(v.ETag) {
		header["If-None-Match"] = []string{v.ETag}
	}
	if v.LastModified != "" && isFieldValue(v.LastModified) {
		header["If-Modified-Since"] = []string{v.LastModified}
	}
	req := &http.Request{
		Method:     http.MethodGet,
		URL:        &t.wire,
		Host:       t.wire.Host,
		Header:     header,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	return req.WithContext(ctx)
}

// accept says what a browser's says, in short: some servers answer 406 without one, or send
// something that is no page.
const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// header returns the fields that all requests have.
func (o Options) header(codings string) http.Header {
	header := http.Header{
		"User-Agent":      {o.UserAgent},
		"Accept":          {accept},
		"Accept-Encoding": {codings},
	}
	if o.From != "" {
		header["From"] = []string{o.From}
	}
	return header
}

// location returns where a redirect leads, or "" if resp is none or does not say.
func location(resp *http.Response, base *weburl.URL) string {
	to := resp.Header.Get("Location")
	// A 304 may repeat the fields of the page, and a 201 names what was made: neither leads on.
	redirect := 300 <= resp.StatusCode && resp.StatusCode < 400 &&
		resp.StatusCode != http.StatusNotModified
	if !redirect || to == "" {
		return ""
	}
	u, err := weburl.Parse(to, base)
	if err != nil {
		return ""
	}
	u.Username, u.Password = "", ""
	return string(u.Append(nil, false))
}

// isFieldValue reports whether s may be the value of a header field: no control characters, which
// could end the field and begin another.
func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
