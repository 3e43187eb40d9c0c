package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/spinneret-go/spinneret/internal/content"
	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// Transport returns the guards of c as a RoundTripper for any http.Client. It shares the
// connections of c. It is safe for concurrent use.
//
// All limits of the Options hold except MaxMemory, since bodies are streamed. The limits on the
// body hold while it is read: then Read returns an [Error], with a Kind such as [CutLength].
// MinRate counts the time of the server, not that of the reader, nor that in which the body of the
// request is waited for; a Timeout that ends in such a time is [Error.Local]. No limit counts the
// time for which a layer above holds the request back in httptrace.ClientTrace.GotConn. As with
// net/http, a body of a request whose Read blocks can hold RoundTrip beyond all limits. A request
// without Accept-Encoding is sent with the codings that c knows, and its response is decoded, as
// http.Transport does with gzip. Fields of the Options that a request lacks, such as User-Agent,
// are added. Redirects and cookies are left to the http.Client. A protocol cannot be switched:
// requests with a field Upgrade are refused.
//
// A layer above that needs bodies as they were sent, to record them, sets Accept-Encoding itself
// and has in the request's context, under the key struct{ EncodedBody struct{} }{}, a
// func(*http.Response) io.Writer. If the response is decoded, it is called with the response before
// that, with the Request as it was sent, and what it returns, unless nil, gets the encoded bytes as
// they are read. If that is an io.Closer, it is closed after the last byte, but not if the body ends
// early. Package archivehttp does this.
func (c *Client) Transport() http.RoundTripper { return roundTripper{c} }

type roundTripper struct{ client *Client }

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t roundTripper) CloseIdleConnections() { t.client.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.client
	out := *req // the caller's must not change
	tap, _ := req.Context().Value(httpctx.EncodedBody{}).(func(*http.Response) io.Writer)
	decode, failure := c.completed(&out, tap != nil)
	if failure != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, failure
	}
	x := newExchange(req.Context())
	x.quit = req.Cancel //lint:ignore SA1019 an http.Client sets it
	if out.Body != nil {
		x.upload.Asked, x.upload.Sent = x.asked, x.sent
		x.upload.Attach(&out)
	}
	resp, failure := c.send(x, out.WithContext(x.ctx))
	if failure != nil {
		x.end()
		return nil, failure
	}
	if resp.TLS == nil {
		resp.TLS = x.tls // a connection that keeps its heads hides it from net/http
	}
	if resp.Body == http.NoBody {
		x.upload.Then(x.end)
	} else {
		c.guard(resp, x, decode, tap)
	}
	resp.Request = httpctx.RequestOf(resp, req, c.complete)
	return resp, nil
}

// guard makes the body of resp keep the limits, and decodes it if decode is set. tap may be nil.
func (c *Client) guard(
	resp *http.Response, x *exchange, decode bool, tap func(*http.Response) io.Writer,
) {
	x.watch.answered()
	x.watch.pause()
	body := &stream{src: resp.Body, x: x, limit: c.opts.MaxBody}
	resp.Body = body
	codings := content.Of(resp.Header["Content-Encoding"])
	empty := resp.ContentLength == 0 && resp.ProtoMajor == 2 // http.NoBody if it were of HTTP/1
	if !decode || empty || resp.Header.Get("Content-Length") == "0" || !c.decodes(codings) {
		return
	}
	if tap != nil {
		body.tap = tap(resp)
	}
	resp.Body = c.decoded(body, codings)
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
}

// completed checks a request of an http.Client and adds the fields that it lacks. decode reports
// that the response must be decoded, since the client did not ask for a coding. A layer that taps
// the body has asked instead of the client.
func (c *Client) completed(req *http.Request, tapped bool) (decode bool, failure *Error) {
	if req.URL == nil {
		return false, &Error{Kind: BadURL, Err: errors.New("nil Request.URL")}
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return false, &Error{Kind: BadURL, Err: schemeError(req.URL.Scheme)}
	}
	if failure := c.checkRequest(req); failure != nil {
		return false, failure
	}
	for name := range connectionFields {
		if err := checkField(name, req.Header[name]); err != nil {
			return false, &Error{Kind: BadURL, Err: err}
		}
	}
	if err := unsendable(req); err != nil {
		return false, &Error{Kind: BadURL, Err: err}
	}
	if req.Body == nil && req.ContentLength != 0 {
		err := fmt.Errorf("ContentLength is %d without a body", req.ContentLength)
		return false, &Error{Kind: BadURL, Err: err}
	}
	header := maps.Clone(req.Header)
	if header == nil {
		header = make(http.Header)
	}
	asked := len(header["Accept-Encoding"]) > 0 // net/http takes a field without values for none
	decode = (!asked || tapped) && len(header["Range"]) == 0 && req.Method != http.MethodHead
	for name, values := range c.complete {
		_, ok := header[name]
		if name == "Accept-Encoding" {
			ok = !decode
		}
		if !ok {
			header[name] = values
		}
	}
	req.Header = header
	return decode, nil
}

// stream is a body that its reader gets as it arrives, within the limits. As with net/http, Close
// may be called while another goroutine is in Read.
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
	if tap, ok := s.tap.(io.Closer); ok && err == io.EOF {
		_, s.tap = tap.Close(), nil
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
		n, s.err = n-1, s.x.cut(cut, nil)
	case err == nil:
		return n, nil
	case err != io.EOF && (cut == CutTime || cut == CutSlow):
		s.err = s.x.cut(cut, context.DeadlineExceeded)
		if context.Cause(s.x.ctx) == errReader {
			s.err = s.x.cut(cut, errReader)
		}
	default:
		s.err = err
	}
	if err == io.EOF && s.err == err {
		s.x.upload.Then(s.x.end) // a server of HTTP/2 may still wait for the rest of the request's body
		return n, err
	}
	s.Close()
	return n, s.err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	err := s.src.Close()
	s.x.upload.Then(s.x.end)
	return err
}

// decodedStream is a stream without its content codings.
type decodedStream struct {
	raw     *stream
	decoded *content.Reader
}

func (c *Client) decoded(raw *stream, codings string) *decodedStream {
	// The context of the exchange ends when the last byte has come, but not its decoding.
	o := content.Options{
		Brotli: c.opts.Brotli, Max: c.opts.MaxBody, Free: ratioAllowance, Until: raw.x.parent,
	}
	if c.opts.MaxRatio > 0 {
		o.Ratio = int64(c.opts.MaxRatio)
	}
	return &decodedStream{raw, content.NewReader(raw, codings, o)}
}

// Read implements io.Reader.
func (d *decodedStream) Read(p []byte) (int, error) {
	n, err := d.decoded.Read(p)
	if err != nil && err != io.EOF {
		d.raw.Close()
		err = d.blame(err)
	}
	return n, err
}

// blame returns why a body cannot be decoded: because it was cut, or else because it is corrupt.
func (d *decodedStream) blame(err error) error {
	switch {
	case d.raw.err != nil && d.raw.err != io.EOF:
		return d.raw.err
	case err == content.ErrClosed:
		return http.ErrBodyReadAfterClose
	case err == d.raw.x.parent.Err():
		return err
	case errors.Is(err, content.ErrRatio):
		return d.raw.x.cut(CutRatio, nil)
	case errors.Is(err, content.ErrTooLarge):
		return d.raw.x.cut(CutLength, nil)
	}
	return d.raw.x.cut(CutCoding, err)
}

// Close implements io.Closer.
func (d *decodedStream) Close() error {
	err := d.raw.Close()
	d.decoded.Close()
	return err
}
