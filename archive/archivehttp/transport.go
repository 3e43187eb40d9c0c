package archivehttp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/upload"
)

// Defaults of the fields of a [Transport], in bytes.
const (
	DefaultMaxBody    = 1 << 30
	DefaultMaxRequest = 1 << 20
)

// Transport is an http.RoundTripper that records what passes through it. Make one with
// [NewTransport]. Its fields must not change once it is in use. Its methods are safe for concurrent
// use.
type Transport struct {
	// MaxBody is the maximum number of bytes recorded of a body, as sent. The client gets the whole
	// body. 0 means 1 GiB. Negative means without limit.
	MaxBody int64

	// MaxRequest is the maximum number of bytes recorded of a request body. It is held in memory
	// until the response ends. 0 means 1 MiB. Negative means that only the head is recorded.
	MaxRequest int64

	base     http.RoundTripper
	archive  *archive.Archive
	decodes  bool            // what no client has asked for, as an http.Transport does
	observed *http.Transport // the one that base is a clone of; nil if it is none

	mu     sync.Mutex // guards failed
	failed error      // of a capture, until the next RoundTrip returns it
}

// NewTransport returns a Transport that sends requests through base and records into an archive,
// which must stay open until the last body has been closed.
//
// A nil base means one with the settings of [http.DefaultTransport]. An [*http.Transport] is cloned
// to observe its connections, so it does not share connections with the original.
//
// Any other base is used as it is, and any layers may be between it and the [*http.Transport] or
// the fetch.Client below. Heads are then those of the wire if that is a fetch.Client. Bodies are
// recorded as sent: the Transport itself asks for gzip, and decompresses it, instead of a client
// that asks for no coding. A base that decodes bodies itself can take over: see
// fetch.Client.Transport.
func NewTransport(base http.RoundTripper, a *archive.Archive) *Transport {
	t := &Transport{base: base, archive: a, decodes: true}
	if base == nil {
		t.base = http.DefaultTransport
	}
	if plain, ok := t.base.(*http.Transport); ok {
		t.decodes = !plain.DisableCompression
		t.base, t.observed = observed(plain), plain
	}
	return t
}

// CloseIdleConnections closes the idle connections of the base, for
// [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. It sends nothing if a capture could not be written since
// the last call, and returns the error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.takeFailure(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	x := t.begin(req)
	base := t.base
	if t.observed != nil && req.URL != nil && req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		base = t.observed // a clone does not know the protocols that were registered with it
	}
	resp, err := base.RoundTrip(x.req)
	if resp == nil && err == nil {
		err = errNothing
	}
	if err != nil {
		x.discard(nil)
		return nil, err
	}
	x.record(resp)
	resp.Request = httpctx.RequestOf(resp, req, coding)
	return resp, nil
}

var errNothing = errors.New("archivehttp: the RoundTripper below returned neither a response nor an error")

// takeFailure returns the last error, unless a RoundTrip has returned it.
func (t *Transport) takeFailure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.failed
	t.failed = nil
	return err
}

// fail records that a capture was not written.
func (t *Transport) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = err
}

// exchange is a request and its response. It is not safe for concurrent use, except conn, sent and
// tap.
type exchange struct {
	t       *Transport
	req     *http.Request // as the base gets it
	started time.Time
	conn    connection
	sent    *sentBody // nil if the request has no body
	above   tapFunc   // of another recorder above; nil if there is none
	decodes bool      // the client did not request a coding, and must not see one

	mu     sync.Mutex
	tapped []tapped
	over   bool // it is known which response the client gets
}

// tapped is a response that a layer below decodes. If a layer in between repeats requests, there
// are several, and the client gets one of them.
type tapped struct {
	resp *http.Response
	r    *recorder
}

// maxTapped is how many responses are recorded before it is known which one the client gets.
const maxTapped = 4

// coding is what begin asks for.
var coding = http.Header{"Accept-Encoding": {"gzip"}}

// begin prepares a copy of a request for the base.
func (t *Transport) begin(req *http.Request) *exchange {
	x := &exchange{t: t, started: time.Now()}
	ctx := req.Context()
	if t.observed != nil {
		ctx = httpctx.WithHandshake(ctx)
	}
	ctx = x.conn.observe(ctx)
	if req.Header.Get("Upgrade") != "" {
		ctx = context.WithValue(ctx, onlyHTTP1{}, true)
	}
	x.decodes = t.decodes && req.Method != http.MethodHead && req.Header.Get("Accept-Encoding") == "" &&
		req.Header.Get("Range") == ""
	above, tapped := ctx.Value(httpctx.EncodedBody{}).(tapFunc)
	if tapped || x.decodes {
		x.above = above
		ctx = context.WithValue(ctx, httpctx.EncodedBody{}, x.tap)
	}
	x.req = req.WithContext(ctx)
	if x.decodes {
		x.req.Header = req.Header.Clone()
		if x.req.Header == nil {
			x.req.Header = http.Header{}
		}
		maps.Copy(x.req.Header, coding)
	}
	if req.Body != nil && req.Body != http.NoBody {
		x.sent = &sentBody{max: max(cmp.Or(t.MaxRequest, DefaultMaxRequest), 0)}
		upload.Wrap(x.req, x.sent.record)
	}
	return x
}

// A tapFunc is the value of httpctx.EncodedBody.
type tapFunc = func(*http.Response) io.Writer

// tap is called with a response as it was sent, and returns what gets its body as it was sent, and
// is closed at the end of that. It returns nil if the client has another response by now.
func (x *exchange) tap(resp *http.Response) io.Writer {
	var above io.Writer
	if x.above != nil {
		above = x.above(resp)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return above
	}
	r := x.recorder(resp, true)
	r.want = resp.ContentLength
	if len(x.tapped) == maxTapped {
		x.tapped[0].r.discard()
		x.tapped = slices.Delete(x.tapped, 0, 1)
	}
	x.tapped = append(x.tapped, tapped{resp, r})
	return tap{r, above}
}

// discard ends the recording of tapped responses but one, and returns that. It is the one of resp
// or, if a layer in between has made another response of it, the last one.
func (x *exchange) discard(resp *http.Response) (kept *recorder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	last := len(x.tapped) - 1
	at := slices.IndexFunc(x.tapped, func(one tapped) bool { return one.resp == resp })
	if at < 0 && resp != nil && resp.Uncompressed {
		at = last
	}
	for i, one := range x.tapped {
		if i == at {
			kept = one.r
		} else {
			one.r.discard()
		}
	}
	x.tapped = nil
	return kept
}

// recorder returns a recorder of a response and its request. That is the client's, or the last one if a
// layer below has followed redirects: the response names that. Other copies are not recorded: they may
// name an address in place of the host, have a secret in the URL, or another body. Only a tap knows the
// fields that were sent, with the codings that the layer asks for.
func (x *exchange) recorder(resp *http.Response, tapped bool) *recorder {
	sent := *resp
	if below := resp.Request; !httpctx.Redirected(x.req, below) {
		sent.Request = x.req
		if tapped && below != nil {
			req := *x.req
			req.Header = maps.Clone(below.Header)
			if x.req.Header["Content-Encoding"] == nil {
				delete(req.Header, "Content-Encoding")
			}
			sent.Request = &req
		}
	}
	r := &recorder{x: x, want: -1, tapped: tapped, req: sent.Request, spool: spool{max: cmp.Or(x.t.MaxBody, DefaultMaxBody)}}
	r.capture = x.capture(&sent)
	return r
}

// record makes a response record its body while the client reads it.
func (x *exchange) record(resp *http.Response) {
	if resp.TLS == nil {
		resp.TLS = x.conn.tls()
	}
	r := x.discard(resp)
	if r == nil {
		r = x.recorder(resp, false)
	}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		r.finish("") // the body is a connection, which only the client may read
		return
	case resp.Body == nil || resp.Body == http.NoBody:
		r.finish("")
		if r.err != nil {
			r.src = http.NoBody
			resp.Body = r
		}
		return
	}
	r.src = resp.Body
	if !r.tapped {
		r.want = resp.ContentLength
	}
	if r.req.Method == http.MethodHead {
		r.want = 0
	}
	resp.Body = r
	if x.decodes && resp.ContentLength != 0 && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		resp.Body = &gunzipped{raw: r}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
}

// capture describes a response before its body is read.
func (x *exchange) capture(resp *http.Response) (c archive.Capture) {
	c.FromResponse(resp, nil)
	c.Time, c.Truncated = x.conn.sentAt(x.started), ""
	request, response, ok := x.conn.heads(resp)
	proxied := x.conn.viaProxy(request)
	if ok {
		c.Head, c.Rebuilt = response, false
		// The head for a proxy has a different first line, and maybe a password.
		if len(request) > 0 && !proxied {
			c.Request = request
		} else {
			c.Rebuilt = true
		}
	}
	if !proxied {
		c.Addr = x.conn.addr()
	}
	return c
}
