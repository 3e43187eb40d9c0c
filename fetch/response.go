package fetch

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// memory is what Release takes back. Copies of a Response share it, and it is returned once, by
// whoever sets released.
type memory struct {
	released atomic.Bool

	held    *reservation
	buffers [2][]byte // of Raw and Body; those may be cut by the caller
}

// Response is the result of one request. Its methods are safe for concurrent use.
type Response struct {
	URL      string      // the requested one, normalized, without fragment and credentials
	Status   int         // such as 200
	Proto    string      // such as "HTTP/1.1"
	Header   http.Header // of the response
	Location string      // where a redirect leads, absolute, of any scheme; else ""

	RequestHead []byte // request line, fields and blank line
	Head        []byte // status line, fields and blank line, without interim (1xx) responses
	HeadExact   bool   // both are the bytes on the wire (HTTP/1.x), not reconstructed (HTTP/2)

	Raw       []byte // the body with its content coding, without its transfer coding
	RawCut    Kind   // why Raw is not the whole body
	Body      []byte // Raw without its content coding; shares memory with Raw if it had none
	Truncated Kind   // why Body is not the whole page; CutCoding if it could not be decoded
	memory    *memory

	RetryAfter time.Duration // the delay that the server asks for, from FirstByte; else 0
	// Fresh is how long from FirstByte the page may be assumed unchanged, by its Cache-Control,
	// Expires and Age; 0 if the server does not say, or forbids it.
	Fresh time.Duration

	Addr netip.AddrPort // of the server
	// TLS is the negotiated state, shared by all responses of a connection; nil without TLS.
	TLS      *tls.ConnectionState
	Attempts int  // requests sent, at most three; this is the response to the last one
	Reused   bool // the connection had served an earlier request

	Start        time.Time // Get was called
	WroteRequest time.Time // the request was handed to the connection
	FirstByte    time.Time // the response began
}

// Wait returns the time from the request to the first byte of the response; 0 if unknown.
func (r *Response) Wait() time.Duration {
	if r.WroteRequest.IsZero() || r.FirstByte.IsZero() {
		return 0
	}
	return max(r.FirstByte.Sub(r.WroteRequest), 0)
}

// NotModified reports whether the server answered that the page has not changed (304).
func (r *Response) NotModified() bool { return r.Status == http.StatusNotModified }

// Validators returns what to put into the next [Request] of the same URL, if the caller keeps this
// page. A 304 may omit them; then those of the request stay valid. Do not use those of an error
// page or of a body that was cut: the next answer may be "not modified" for a page that was never
// stored.
func (r *Response) Validators() Validators {
	return Validators{ETag: r.Header.Get("Etag"), LastModified: r.Header.Get("Last-Modified")}
}

// setHeads takes the heads off the wire or, if that is not possible, reconstructs them.
func (r *Response) setHeads(x *exchange, req *http.Request, resp *http.Response) {
	// Either both are exact or neither: two flags would help nobody.
	if r.RequestHead, r.Head, r.HeadExact = x.takeHeads(resp); r.HeadExact {
		return
	}
	// HTTP/2 has the fields of a request line, and net/http the rest of the absolute form.
	path := strings.TrimPrefix(req.URL.RequestURI(), req.URL.Scheme+"://"+req.Host)
	line := req.Method + " " + path + " " + resp.Proto + "\r\nHost: " + req.Host
	fields := req.Header
	if resp.Request != nil {
		// What Options.Wrap has added is in a request of its own.
		fields = resp.Request.Header
	}
	r.RequestHead = head(line, fields)
	r.Head = head(resp.Proto+" "+resp.Status, resp.Header)
}

func head(line string, h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString(strings.TrimRight(line, " ") + "\r\n")
	_ = h.Write(&b) // a Buffer takes all
	b.WriteString("\r\n")
	return b.Bytes()
}

// maxRetryAfter keeps a count of seconds within what a Duration can hold.
const maxRetryAfter = 365 * 24 * time.Hour
