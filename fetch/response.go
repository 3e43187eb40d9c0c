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

	Raw       []byte     // the body with its content coding, without its transfer coding
	RawCut    Truncation // why Raw is not the whole body
	Body      []byte     // Raw without its content coding; shares memory with Raw if it had none
	Truncated Truncation // why Body is not the whole page; CutCoding if it could not be decoded
	held      *reservation

	RetryAfter time.Duration // that the server asks for, from Timing.FirstByte on; else 0
	// Fresh is for how long from Timing.FirstByte on the page may be taken for unchanged, by its
	// Cache-Control, Expires and Age; 0 if it does not say, or says that it may not.
	Fresh   time.Duration
	NoStore bool // Cache-Control says that nobody is to keep it

	Addr netip.AddrPort // of the server
	// TLS is what was negotiated; nil without TLS. All responses of a connection share it.
	TLS      *tls.ConnectionState
	Attempts int  // requests begun, of at most three; this is the response to the last one
	Reused   bool // whether the connection had served an earlier request
	Timing   Timing
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

// Truncation says why a body is not whole, in one word. The zero Truncation is Whole.
type Truncation string

// Why a body ended where it did. The words "length", "time" and "disconnect" mean the same in the
// WARC-Truncated field of an archive.
const (
	Whole         Truncation = ""           // it is complete
	CutLength     Truncation = "length"     // at MaxBody
	CutTime       Truncation = "time"       // at Timeout
	CutSlow       Truncation = "slow"       // it came more slowly than MinRate
	CutRatio      Truncation = "ratio"      // it grew by more than MaxRatio while it was decoded
	CutDisconnect Truncation = "disconnect" // the connection ended before the body did
	CutCoding     Truncation = "coding"     // its content coding is unknown or corrupt
	CutMemory     Truncation = "memory"     // at MaxMemory: this is not the server's doing
)

// String returns the word, or "whole".
func (t Truncation) String() string {
	if t == Whole {
		return "whole"
	}
	return string(t)
}

// Error returns the word in a sentence: a Truncation ends a body that [Client.Transport] streams.
func (t Truncation) Error() string { return "fetch: body cut: " + t.String() }

// Timeout reports whether a limit of time was reached.
func (t Truncation) Timeout() bool { return t == CutTime || t == CutSlow }

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
