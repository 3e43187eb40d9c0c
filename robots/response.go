package robots

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Request is one request on the way to the rules of a host.
type Request struct {
	For          string // the robots.txt whose rules are wanted
	URL          string // what to request; differs from For after a redirect
	Hop          int    // number of redirects so far
	ETag         string // send it as If-None-Match, if not empty
	LastModified string // send it as If-Modified-Since, if not empty

	// Flight numbers a request together with the redirects that follow from it. A response to any
	// flight but the current one is ignored, so a late one does no harm.
	Flight uint64
}

// Response is the response to a [Request]. The zero Response means that the host could not be
// reached. [ReadResponse] makes one from an http.Response.
type Response struct {
	Status int
	Header http.Header // needed: Location, validators, cache control and Retry-After
	Body   []byte      // decoded; robotstxt.MaxSize+1 bytes are enough

	// Whole means that Body is complete and decoded. An incomplete file may lack the line that
	// forbids, so it is ignored and the host counts as unreachable. Only a Body longer than
	// robotstxt.MaxSize bytes may be cut, since the rest is not parsed anyway; but a 206 may lack
	// the beginning.
	Whole bool

	// Reason says why there is no complete file, if Status does not, for [Entry] and for people.
	Reason string
}

// ReadResponse makes a Response from what an http.Client returned. It reads as much of the body as
// is needed, and of a redirect or an error at most 64 KiB, decodes a remaining gzip content coding,
// and closes the body. If the client returned an error, or the body breaks off or cannot be decoded,
// the host counts as unreachable. Before calling it, check whether it was the caller's own context
// that ended.
func ReadResponse(resp *http.Response, err error) Response {
	r, _ := readResponse(resp, err)
	return r
}

// readResponse also returns why there is no file, if that is an error.
func readResponse(resp *http.Response, err error) (Response, error) {
	switch {
	case err != nil:
		return Response{Reason: err.Error()}, err
	case resp == nil || resp.Body == nil:
		return Response{}, nil
	}
	defer resp.Body.Close()
	r := Response{Status: resp.StatusCode, Header: resp.Header}
	if r.Status == http.StatusSwitchingProtocols {
		return r, nil // the body is a connection, which no context ends any more
	}
	if !found(r.Status) {
		// A connection can be used again only after a whole body, but a long one is not worth it.
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
		return r, nil
	}
	text, err := decoded(resp)
	if err == nil {
		r.Body, err = io.ReadAll(io.LimitReader(text, robotstxt.MaxSize+1))
	}
	// No range was requested. If the server sends one anyway, the rest is missing.
	r.Whole = err == nil && r.Status != http.StatusPartialContent
	if err != nil {
		r.Reason = err.Error()
	}
	return r, err
}

// maxDrain is how much is read of a body that says nothing.
const maxDrain = 64 << 10

// decoded returns the body without its content coding. net/http decodes gzip itself, unless a
// transport asked for it explicitly or the server sent it unasked.
func decoded(resp *http.Response) (io.Reader, error) {
	isNone := func(coding string) bool { return coding == "" || coding == "identity" }
	field := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	if len(field) > maxField {
		return nil, errors.New("robots: unknown content coding, by too long a field")
	}
	all := strings.Split(field, ",")
	for i := range all {
		all[i] = strings.ToLower(strings.TrimSpace(all[i]))
	}
	coding := strings.Join(slices.DeleteFunc(all, isNone), ",")
	switch coding {
	case "":
		return resp.Body, nil
	case "gzip", "x-gzip":
		// Empty blocks are input without output, so the input is limited too.
		text, err := gzip.NewReader(io.LimitReader(resp.Body, 2*robotstxt.MaxSize))
		if err == io.EOF { // an empty body, which net/http leaves as it is if its length is known
			return resp.Body, nil
		}
		return text, err
	default:
		return nil, fmt.Errorf("robots: unknown content coding %q", coding)
	}
}

// found reports whether the body of a response is a robots.txt.
func found(status int) bool { return status >= 200 && status < 300 }

// missing reports whether a status means that a host has no robots.txt. The RFC includes 429. Like
// Google, this package does not: a server that asks for fewer requests has not said that there are
// no rules. Nor has a proxy that asks for a password, which alone sends a 407.
func missing(status int) bool {
	return status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusProxyAuthRequired
}

// File returns what one response means by RFC 9309 (2.3.1). For an unreachable host it returns nil,
// which forbids everything. Redirects must have been followed already. A 304 confirms an older File
// and is not handled here.
//
//	status            RFC 9309            meaning
//	2xx               2.3.1.1             the body is parsed
//	3xx               2.3.1.2             redirects left over after five: everything is allowed
//	other 4xx         2.3.1.3             there is no file: everything is allowed
//	407               2.3.1.4 by choice   a proxy wants a password: nothing is allowed
//	429               2.3.1.4 by choice   the server is overloaded: nothing is allowed
//	5xx               2.3.1.4             unreachable: nothing is allowed
//	all else          2.3.1.4             0 stands for no response at all: nothing is allowed
func (r Response) File() *robotstxt.File {
	switch {
	case found(r.Status) && (r.Whole || len(r.Body) > robotstxt.MaxSize && r.Status != http.StatusPartialContent):
		return robotstxt.Parse(r.Body)
	case missing(r.Status):
		return noFile
	}
	return nil
}

// noFile allows everything.
var noFile = robotstxt.Parse(nil)

var (
	// ErrDisallowed is wrapped by [DisallowedError]: the site does not want the request.
	ErrDisallowed = errors.New("robots: disallowed by robots.txt")

	// ErrUnreachable is wrapped by [UnreachableError]: what the site wants is not known.
	ErrUnreachable = errors.New("robots: robots.txt is unreachable")

	// ErrFull means that a URL was not looked up, because the requests in flight take up
	// Options.MaxBytes, or because Pending.Max items wait for them.
	ErrFull = errors.New("robots: too many requests in flight; store or abandon some first")
)

// DisallowedError says which URL may not be fetched, and by which rule. It wraps [ErrDisallowed].
// Its methods are safe for concurrent use.
type DisallowedError struct {
	URL string
	robotstxt.Verdict
}

// Error names the URL and the rule.
func (e *DisallowedError) Error() string {
	return fmt.Sprintf("robots: %s is disallowed by line %d of robots.txt: %s",
		e.URL, e.Line, e.Pattern)
}

// Local returns true: the error says nothing about the server, for layers that slow down for
// failing ones.
func (e *DisallowedError) Local() bool { return true }

// Unwrap returns [ErrDisallowed].
func (e *DisallowedError) Unwrap() error { return ErrDisallowed }

// UnreachableError says that a URL may not be fetched for now, since the robots.txt of its host
// cannot be (RFC 9309, 2.3.1.4). It wraps [ErrUnreachable] and the cause. Its methods are safe for
// concurrent use.
type UnreachableError struct {
	URL    string
	Reason string    // why it cannot be fetched
	Retry  time.Time // when the next attempt is
	Err    error     // of the attempt that was made just now; nil if an earlier one had failed
}

// Error names the URL, the reason and the next attempt.
func (e *UnreachableError) Error() string {
	text := "robots: " + e.URL + " may not be fetched until its robots.txt can be"
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if !e.Retry.IsZero() {
		text += "; next attempt at " + e.Retry.UTC().Format(time.RFC3339)
	}
	return text
}

// Local returns true, since no request was made for the URL.
func (e *UnreachableError) Local() bool { return true }

// Unwrap returns [ErrUnreachable] and the cause, if it is known.
func (e *UnreachableError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnreachable}
	}
	return []error{ErrUnreachable, e.Err}
}

// Timeout reports whether the cause is a timeout.
func (e *UnreachableError) Timeout() bool { return isTimeout(e.Err) }
