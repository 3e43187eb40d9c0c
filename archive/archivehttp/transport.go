package archivehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
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

	// SpillDir is the directory for temporary files of bodies that are longer than 1 MiB. "" means
	// [os.TempDir].
	SpillDir string

	base    http.RoundTripper
	archive *archive.Archive
	gunzips bool // because the base does not

	mu     sync.Mutex // guards what follows
	failed []error    // of captures, until the next RoundTrip returns them
}

// NewTransport returns a Transport that sends requests through base and records into an archive,
// which must stay open until the last body has been closed.
//
// A nil base means one with the settings of [http.DefaultTransport]. An [*http.Transport] is cloned
// to observe its connections, so it does not share connections with the original.
//
// Any other base is used as it is. Its connections are observed if those that it reports to
// httptrace.ClientTrace.GotConn have the method
//
//	Heads() func(status int) (request, response []byte, ok bool)
//
// It begins an exchange, and returns a function that returns the heads of this exchange. If a base
// decodes bodies itself, they are recorded as sent if it has the method
//
//	Tap(resp *http.Response, w io.Writer) bool
//
// It is called before the body is read, and makes reads of resp.Body also write the undecoded bytes
// to w. Without this method, the Transport itself requests and decompresses gzip.
func NewTransport(base http.RoundTripper, a *archive.Archive) *Transport {
	t := &Transport{base: base, archive: a, gunzips: true}
	if base == nil {
		t.base = http.DefaultTransport
	}
	if plain, ok := t.base.(*http.Transport); ok {
		t.gunzips = !plain.DisableCompression
		t.base = observed(plain)
	} else if _, ok := base.(tapper); ok {
		t.gunzips = false
	}
	return t
}

// tapper is a RoundTripper that decodes bodies itself.
type tapper interface {
	Tap(resp *http.Response, w io.Writer) bool
}

// CloseIdleConnections closes the idle connections of the base, for
// [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
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
	resp, err := t.base.RoundTrip(x.req)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	x.record(resp)
	return resp, nil
}

// takeFailure returns the errors that no RoundTrip has returned.
func (t *Transport) takeFailure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := errors.Join(t.failed...)
	t.failed = nil
	return err
}

// maxFailed bounds the errors that wait for a RoundTrip.
const maxFailed = 16

// fail records that a capture was not written.
func (t *Transport) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failed) < maxFailed {
		t.failed = append(t.failed, err)
	}
}

// exchange is a request and its response. It is not safe for concurrent use, except conn and sent.
type exchange struct {
	t       *Transport
	req     *http.Request // as the base gets it
	started time.Time
	conn    connection
	sent    *sentBody // nil if the request has no body
	gunzip  bool      // the client did not request a coding, and must not see one
}

// begin prepares a copy of a request for the base.
func (t *Transport) begin(req *http.Request) *exchange {
	x := &exchange{t: t, started: time.Now()}
	ctx := x.conn.observe(req.Context())
	if req.Header.Get("Upgrade") != "" {
		ctx = context.WithValue(ctx, onlyHTTP1{}, true)
	}
	x.req = req.WithContext(ctx)
	if t.gunzips && req.Method != http.MethodHead && req.Header.Get("Accept-Encoding") == "" &&
		req.Header.Get("Range") == "" {
		x.gunzip = true
		x.req.Header = req.Header.Clone()
		if x.req.Header == nil {
			x.req.Header = http.Header{}
		}
		x.req.Header.Set("Accept-Encoding", "gzip")
	}
	if req.Body != nil && req.Body != http.NoBody {
		x.sent = &sentBody{max: max(cmp.Or(t.MaxRequest, DefaultMaxRequest), 0)}
		x.sent.wrap(x.req)
	}
	return x
}

// record makes a response record its body while the client reads it.
func (x *exchange) record(resp *http.Response) {
	if resp.TLS == nil {
		resp.TLS = x.conn.tls()
	}
	r := &recorder{x: x, want: -1, spool: spool{dir: x.t.SpillDir,
		max: cmp.Or(x.t.MaxBody, DefaultMaxBody)}}
	r.capture, r.chunked = x.capture(resp)
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
	r.src, r.want = resp.Body, resp.ContentLength
	if base, ok := x.t.base.(tapper); ok && base.Tap(resp, tap{r}) {
		r.src, r.tapped = resp.Body, true
	}
	resp.Body = r
	coding := resp.Header.Get("Content-Encoding")
	if x.gunzip && resp.ContentLength != 0 && strings.EqualFold(coding, "gzip") {
		resp.Body = &gunzipped{raw: r}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
}

// capture describes a response before its body is read. chunked reports whether the request's body
// was sent in chunks.
func (x *exchange) capture(resp *http.Response) (c archive.Capture, chunked bool) {
	req := resp.Request
	resp.Request = x.req // as it was sent
	c = archive.FromResponse(resp, nil)
	resp.Request = req
	c.Time, c.Truncated = x.started, ""
	request, response, ok := x.conn.heads(resp)
	if ok {
		c.Head, c.Rebuilt = response, false
		// The head for a proxy has a different first line, and maybe a password.
		if len(request) > 0 && !x.conn.proxied() && !isAbsolute(request) {
			c.Request = request
		} else {
			c.Rebuilt = true
		}
	}
	if !x.conn.proxied() && !isAbsolute(request) {
		c.Addr = x.conn.addr()
	}
	return c, hasChunks(c.Request)
}

func describe(url string, err error) error {
	return fmt.Errorf("archivehttp: record %.200s: %w", url, err)
}
