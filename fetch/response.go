package fetch

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Response is what one request brought. Its methods are safe for concurrent use.
type Response struct {
	URL      string      // that was requested: normalised, without fragment and credentials
	Status   int         // such as 200
	Proto    string      // such as "HTTP/1.1"
	Header   http.Header // of the response
	Location string      // of a redirect: as URL, but of any scheme; else ""

	RequestHead []byte // request line, fields and blank line
	Head        []byte // status line, fields and blank line; interim (1xx) responses left out
	HeadExact   bool   // the two are the bytes of the wire (HTTP/1.x), not made up (HTTP/2)

	Raw       []byte // the body with its content coding, without its transfer coding
	RawCut    Kind   // why Raw is not the whole body
	Body      []byte // Raw without its content coding; shares memory with Raw if it had none
	Truncated Kind   // why Body is not the whole page; CutCoding if it could not be decoded
	held      *reservation

	RetryAfter time.Duration // that the server asks for, from FirstByte on; else 0
	// Fresh is for how long from FirstByte on the page may be taken for unchanged, by its
	// Cache-Control, Expires and Age; 0 if it does not say, or says that it may not.
	Fresh   time.Duration
	NoStore bool // Cache-Control says that nobody is to keep it

	Addr netip.AddrPort // of the server
	// TLS is what was negotiated; nil without TLS. All responses of a connection share it.
	TLS      *tls.ConnectionState
	Attempts int  // requests begun, of at most three; this is the response to the last one
	Reused   bool // whether the connection had served an earlier request

	// The instants of the exchange. A zero time is one that was not seen: a connection that is used
	// again has neither been resolved nor dialled for.
	Start        time.Time // Get was called
	Resolved     time.Time // the host had an address
	Dialled      time.Time // the TCP connection stood
	Secured      time.Time // the TLS handshake was done
	Connected    time.Time // a connection was there, new or kept alive
	WroteRequest time.Time // the request was handed to the connection
	FirstByte    time.Time // the response began
	Done         time.Time // the last byte that Raw holds was there
}

// NotModified reports whether the server answered that the page is as it was (304).
func (r *Response) NotModified() bool { return r.Status == http.StatusNotModified }

// Hash returns the SHA-256 of Body. Each call computes it, so that callers who want none do not
// pay for it; it is a good part of the work that a small page makes.
func (r *Response) Hash() [32]byte { return sha256.Sum256(r.Body) }

// Unchanged reports whether the page is the one whose Hash was hash: the server says so (304), or
// its body is the same to the byte. A body that was cut is compared as far as it came.
func (r *Response) Unchanged(hash [32]byte) bool { return r.NotModified() || r.Hash() == hash }

// Validators returns what to pass to the next Get of the same URL, if the page of this response is
// kept. After a 304, which may leave them out, those of the request stay good. With those of an
// error or of a body that was cut, the next answer may be "not modified" for a page that nobody
// has.
func (r *Response) Validators() Validators {
	return Validators{ETag: r.Header.Get("Etag"), LastModified: r.Header.Get("Last-Modified")}
}

// setHeads takes the heads off the wire or, where that cannot be, makes them up.
func (r *Response) setHeads(x *exchange, req *http.Request, resp *http.Response) {
	// One that is exact beside one that is made up would need two flags and help nobody.
	if r.RequestHead, r.Head, r.HeadExact = x.takeHeads(resp.StatusCode); r.HeadExact {
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
