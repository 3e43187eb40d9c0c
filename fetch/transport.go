package fetch

import (
	"bufio"
	"io"
	"maps"
	"net/http"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Transport returns the guards of c as a RoundTripper for any http.Client. It shares the
// connections of c. It is safe for concurrent use.
//
// All limits of the Options hold except MaxMemory, since bodies are streamed. The limits on the
// body hold while it is read: then Read returns a [Kind], such as [CutLength]. MinRate counts the
// time of the server, not that of the reader. A request without Accept-Encoding is sent with the
// codings that c knows, and its response is decoded, as http.Transport does with gzip. Fields that
// a request lacks, such as User-Agent, are those of the Options. Cookies are left to the
// http.Client.
//
// Observers use net/http/httptrace. With HTTP/1.x, the connection that GotConn reports has a method
//
//	Heads() func(status int) (request, response []byte, ok bool)
//
// Called in GotConn, it returns a function. That one returns the heads of this exchange as they
// were on the wire, once the response with the given status has arrived. The RoundTripper has a
// method
//
//	Tap(resp *http.Response, w io.Writer) bool
//
// Called before the body is read, it makes w receive the body as it was sent, before decoding.
func (c *Client) Transport() http.RoundTripper { return roundTripper{c} }

type roundTripper struct{ client *Client }

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t roundTripper) CloseIdleConnections() { t.client.CloseIdle() }

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.client
	out := *req // the caller's must not change
	decode, failure := c.complete(&out)
	if failure != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		failure.URL = req.URL.Redacted()
		return nil, failure
	}
	x := newExchange(req.Context())
	resp, failure := c.send(req.Context(), x, out.WithContext(x.ctx))
	if failure != nil {
		x.end()
		failure.URL = req.URL.Redacted()
		return nil, failure
	}
	resp.Request = req
	if resp.TLS == nil {
		resp.TLS = x.tls // a connection that keeps its heads hides it from net/http
	}
	if resp.Body == http.NoBody {
		x.end()
		return resp, nil
	}
	x.watch.answered()
	x.watch.pause()
	body := &stream{src: resp.Body, x: x, limit: c.opts.MaxBody}
	resp.Body = body
	coding := codingOf(resp.Header["Content-Encoding"])
	if codec, ok := c.codecs[coding]; ok && decode {
		resp.Body = &decodedStream{raw: body, codec: codec, opts: &c.opts}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	return resp, nil
}

// Tap is for observers: see [Client.Transport].
func (t roundTripper) Tap(resp *http.Response, w io.Writer) bool {
	switch body := resp.Body.(type) {
	case *stream:
		body.tap = w
	case *decodedStream:
		body.raw.tap = w
	default:
		return false
	}
	return true
}

// complete checks a request of an http.Client and adds the fields that it lacks. decode reports
// that the response must be decoded, since the request did not ask for a coding.
func (c *Client) complete(req *http.Request) (decode bool, failure *Error) {
	if req.URL == nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return false, &Error{Kind: BadURL, Err: errScheme}
	}
	host := req.URL.Hostname()
	if c.names {
		if u, err := weburl.Parse("http://"+req.URL.Host, nil); err == nil {
			host = u.Host // it may be an address in another spelling
		}
	}
	if failure := c.checkTarget(host, req.URL.Port()); failure != nil {
		return false, failure
	}
	header := maps.Clone(req.Header)
	if header == nil {
		header = make(http.Header)
	}
	_, asked := header["Accept-Encoding"]
	decode = !asked && header["Range"] == nil && req.Method != http.MethodHead
	for name, values := range c.header {
		if name == "Accept-Encoding" && !decode {
			continue
		}
		if _, ok := header[name]; !ok {
			header[name] = values
		}
	}
	c.refer(header, req.URL.String())
	req.Header = header
	return decode, nil
}

// stream is a body that its reader gets as it arrives, within the limits.
type stream struct {
	src   io.ReadCloser
	x     *exchange
	limit int64
	tap   io.Writer // gets what was read; nil for none
	n     int64     // bytes that came
	err   error     // that ended it
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if s.tap != nil && n > 0 {
		_, _ = s.tap.Write(p[:n]) // an observer must not fail the reader
	}
	return n, err
}

func (s *stream) read(p []byte) (int, error) {
	if s.err != nil || len(p) == 0 {
		return 0, s.err
	}
	// One byte more than the limit, to tell a body that ends there from a longer one.
	if left := s.limit - s.n; int64(len(p)) > left {
		p = p[:left+1]
	}
	s.x.watch.resume()
	n, err := s.src.Read(p)
	s.x.watch.add(n)
	s.x.watch.pause()
	s.n += int64(n)
	switch cut := cutBy(s.x.ctx, s.n > s.limit, err); {
	case cut == CutLength:
		n, s.err = n-1, CutLength
	case err == nil:
		return n, nil
	case err != io.EOF && (cut == CutTime || cut == CutSlow):
		s.err = cut
	default:
		s.err = err
	}
	s.Close()
	return n, s.err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	err := s.src.Close()
	s.x.end()
	return err
}

// decodedStream is a stream without its content coding.
type decodedStream struct {
	raw   *stream
	codec codec
	opts  *Options
	src   *bufio.Reader
	dec   io.ReadCloser // nil before the first Read and after the last
	n     int64
	err   error
}

// Read implements io.Reader.
func (d *decodedStream) Read(p []byte) (int, error) {
	if d.err == nil && d.dec == nil {
		d.err = d.open()
	}
	if d.err != nil || len(p) == 0 {
		return 0, d.err
	}
	if left := d.opts.MaxBody - d.n; int64(len(p)) > left {
		p = p[:left+1]
	}
	n, err := d.dec.Read(p)
	d.n += int64(n)
	switch {
	case d.n > d.opts.MaxBody:
		n, d.err = n-1, CutLength
	case d.n > d.opts.ratioLimit(d.raw.n):
		d.err = CutRatio
	case err == nil:
		return n, nil
	case err == io.EOF:
		_, _ = d.src.Peek(1) // the end of the body, after which the connection is free
		d.err = io.EOF
	default:
		d.err = d.blame()
	}
	d.Close()
	return n, d.err
}

func (d *decodedStream) open() (err error) {
	d.src = bufio.NewReader(d.raw)
	head, err := d.src.Peek(4)
	if err == io.EOF && len(head) == 0 {
		return io.EOF
	}
	if !d.codec.fits(head) {
		return d.blame()
	}
	if d.dec, err = d.codec.open(d.src); err != nil {
		return d.blame()
	}
	return nil
}

// blame returns why a body cannot be decoded: because it was cut, or else because it is corrupt.
func (d *decodedStream) blame() error {
	if d.raw.err != nil && d.raw.err != io.EOF {
		return d.raw.err
	}
	return CutCoding
}

// Close implements io.Closer.
func (d *decodedStream) Close() error {
	if d.dec != nil {
		d.dec.Close()
		d.dec = nil
	}
	if d.err == nil {
		d.err = http.ErrBodyReadAfterClose
	}
	return d.raw.Close()
}
