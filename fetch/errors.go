package fetch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/neterr"
)

// Kind says why a Get has no response, or why its body is incomplete. It is an error itself, for
// errors.Is(err, fetch.Blocked). The zero Kind is Whole.
type Kind uint8

// The kinds: a complete body; options without a contact; why a Get has no response, in the order in
// which a Get can meet them; and why a body was cut.
const (
	Whole Kind = iota // the body is complete

	NoAgent   // the Options have no UserAgent
	NoContact // UserAgent has neither a URL nor an e-mail address

	// The request cannot be sent: its URL is not an absolute http or https URL or is longer than
	// MaxURL, a header field is invalid, its body fails, or Options.Wrap refuses it.
	BadURL
	Resolve        // the name has no address, or the look-up failed
	ResolveTimeout // the look-up took too long
	Blocked        // Reach allows none of the host's addresses, or the port is bad
	// The proxy is unreachable or refuses, which is not the server's doing. But to a plain http URL the
	// server behind the proxy can answer 407, too.
	Proxy
	Connect        // refused, unreachable and similar
	ConnectTimeout // no connection in time
	TLS            // the handshake failed, for its certificate or otherwise
	TLSTimeout     // the handshake took too long
	HeadTimeout    // the head of the response was not complete in time
	Disconnected   // the connection, or its stream of HTTP/2, ended before the head was complete
	// The response is not HTTP. Through an HTTP proxy it may also have ended within a line of its head.
	Protocol
	HeaderTooLarge // the head exceeds MaxHeader or MaxFields
	// The server rejected three attempts in a row, each time in a way that asks for another one.
	TooManyAttempts
	Canceled // the caller's context ended, or its http.Client's Timeout

	CutLength     // at MaxBody
	CutTime       // at Timeout
	CutSlow       // it came more slowly than MinRate
	CutRatio      // it grew by more than MaxRatio while being decoded
	CutDisconnect // the connection ended before the body did
	CutCoding     // its content coding is unknown or corrupt
	CutMemory     // at MaxMemory; not the server's doing
)

// kindNames holds the words of WARC-Truncated for CutLength, CutTime and CutDisconnect.
var kindNames = [...]string{
	Whole:           "whole",
	NoAgent:         "no User-Agent",
	NoContact:       "no contact in the User-Agent",
	BadURL:          "bad URL",
	Resolve:         "resolve",
	ResolveTimeout:  "resolve timeout",
	Blocked:         "blocked",
	Proxy:           "proxy",
	Connect:         "connect",
	ConnectTimeout:  "connect timeout",
	TLS:             "tls",
	TLSTimeout:      "tls timeout",
	HeadTimeout:     "head timeout",
	Disconnected:    "disconnected",
	Protocol:        "protocol",
	HeaderTooLarge:  "header too large",
	TooManyAttempts: "too many attempts",
	Canceled:        "canceled",
	CutLength:       "length",
	CutTime:         "time",
	CutSlow:         "slow",
	CutRatio:        "ratio",
	CutDisconnect:   "disconnect",
	CutCoding:       "coding",
	CutMemory:       "memory",
}

// String returns the kind in words, such as "connect timeout".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Error returns the kind in words, with the prefix that errors of this package have.
func (k Kind) Error() string {
	if k.cut() {
		return "fetch: body cut: " + k.String()
	}
	return "fetch: " + k.String()
}

// cut reports whether k is about a body.
func (k Kind) cut() bool { return CutLength <= k && k <= CutMemory }

// Timeout reports whether one of the Client's time limits was reached.
func (k Kind) Timeout() bool {
	switch k {
	case ResolveTimeout, ConnectTimeout, TLSTimeout, HeadTimeout, CutTime, CutSlow:
		return true
	}
	return false
}

// Error is why a Get has no response, or why the body of a [Client.Transport] was cut. It wraps its
// Kind and the cause, which is what net/http returns for the same failure, if it has a name for it.
// Its methods are safe for concurrent use.
type Error struct {
	Kind Kind
	URL  string         // as passed to Get, without credentials; "" from a Transport: an http.Client adds it
	Addr netip.AddrPort // of the server; the zero AddrPort if none was dialed
	Err  error          // the cause; nil if Kind says it all
	// Attempts is how many requests may have reached the server. Each of them calls for a
	// politeness delay.
	Attempts int
	left     bool // the caller left, or a deadline of his passed within the body
}

// Error returns one line, such as "fetch: http://a.test/: resolve: no such host".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("fetch: ")
	if e.URL != "" {
		b.WriteString(printable(e.URL, maxPrintedURL) + ": ")
	}
	if e.Kind.cut() {
		b.WriteString("body cut: ")
	}
	b.WriteString(e.Kind.String())
	if e.Addr.IsValid() {
		b.WriteString(" ")
		b.WriteString(e.Addr.String())
	}
	if e.Err != nil && !e.Kind.Timeout() {
		b.WriteString(": ")
		b.WriteString(printable(innermost(e.Err), maxPrintedCause))
	}
	return b.String()
}

// Unwrap returns the Kind and the cause, if there is one.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Timeout reports whether a time limit was reached, the Client's or the caller's. As with net/http, a
// cause that the caller has given his own limit hides it.
func (e *Error) Timeout() bool {
	return e.Kind.Timeout() || (e.Kind == Canceled || e.Kind == Proxy) && timedOut(e.Err)
}

// Local reports whether the error says nothing about the server: the request could not be sent, the
// caller left, the body exceeds a limit of the Client, or a resource was missing. The server may have
// got a request nevertheless: see Sent. A deadline of the caller that passes before the server answers
// is not Local, whatever cause context.WithTimeoutCause gives it, unlike one that passes before the
// server is dialed, while the body of the request is waited for, or within that of the response. A
// caller who has reasons of his own to leave cancels.
func (e *Error) Local() bool {
	switch e.Kind {
	case NoAgent, NoContact, BadURL, Blocked, Proxy, CutLength, CutRatio, CutMemory:
		return true
	case Canceled:
		return e.left || !e.Sent()
	}
	return neterr.Local(e.Err)
}

// Sent reports whether the server may have noticed the Get: a request may have reached it, or a
// connection was attempted. Then the next one has to wait for the politeness delay, also if the
// error is Local.
func (e *Error) Sent() bool {
	return e.Attempts > 0 || e.Addr.IsValid() && !neterr.Local(e.Err)
}

// Temporary reports whether the same Get may succeed later, without a change of the URL, the
// Options or the server's configuration.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case BadURL, Blocked, Protocol, HeaderTooLarge:
		return false
	case Resolve:
		var dns *net.DNSError
		return !errors.As(e.Err, &dns) || !dns.IsNotFound
	case TLS:
		// A bad certificate stays; a handshake that was cut off says nothing.
		return disconnected(e.Err)
	}
	return true
}

// These limits keep a log line from being as long as a hostile URL, or as the text of a certificate
// or of a response that is not HTTP.
const (
	maxPrintedURL   = 256
	maxPrintedCause = 512
)

// printable makes foreign text fit for a log: short and without control characters.
func printable(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "..."
	}
	odd := func(r rune) bool { return !strconv.IsPrint(r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return text
}

// innermost leaves out the layers of err that repeat what Error has already said: the operation,
// the network, the address.
func innermost(err error) string {
	var (
		op  *net.OpError
		sys *os.SyscallError
		dns *net.DNSError
	)
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &sys):
		return sys.Err.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "net/http: ")
}

// disconnected reports whether err is the end of a connection rather than something that came
// over it.
func disconnected(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	var op *net.OpError
	if neterr.Reset(err) || errors.As(err, &op) && (op.Op == "read" || op.Op == "write") {
		return true
	}
	// None of these is exported by net/http. GOAWAY has three texts: it came before the connection
	// ended, it refused the first stream, or it refused one whose body cannot be sent again. The last
	// is about one stream of HTTP/2.
	return says(err, "server closed idle connection", "client connection lost",
		"client conn could not be established", "server sent GOAWAY", "Transport received GOAWAY",
		"Transport: cannot retry err") || resets(err, "received from peer")
}

// says reports whether one of the errors of err begins with one of some texts of net/http, after the
// name of its package. Elsewhere in an error there may be what the server has sent.
func says(err error, texts ...string) bool {
	return neterr.AnyText(err, func(text string) bool {
		text = strings.TrimPrefix(strings.TrimPrefix(text, "http: "), "http2: ")
		return slices.ContainsFunc(texts, func(with string) bool { return strings.HasPrefix(text, with) })
	})
}

// resets reports whether one of the errors of err is the end of a stream of HTTP/2 for a cause. A cause with
// something that the server has sent ends in a quotation mark.
func resets(err error, cause string) bool {
	return neterr.AnyText(err, func(text string) bool {
		return strings.HasPrefix(text, "stream error: ") &&
			(strings.HasSuffix(text, "; "+cause) || strings.HasSuffix(text, "; http2: "+cause))
	})
}

// alerted reports whether err is an alert of TLS. A server that wants a certificate sends it after
// the handshake (RFC 8446, 4.4.2.4).
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// timedOut reports whether err says that a time limit was reached, whoever set it.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
