package robots

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Request is one request that is needed to learn the rules of a host.
type Request struct {
	For          string // the robots.txt that it is about
	URL          string // what to ask for; differs from For after a redirect
	Hop          int    // how many redirects led there
	ETag         string // to be sent as If-None-Match, if not empty
	LastModified string // to be sent as If-Modified-Since, if not empty

	// Flight is the serial number of the flight that the request belongs to, which is one request
	// and all redirects that follow from it. A response to any other flight than the one that is
	// awaited is ignored, so a late one can do no harm.
	Flight uint64
}

// Response is the response to a [Request]. The zero Response means that there was none, because the
// host could not be reached. [ReadResponse] makes one from an http.Response.
type Response struct {
	Status int
	Header http.Header // Location, validators, ages and Retry-After are read
	Body   []byte      // decoded; robotstxt.MaxSize+1 bytes are enough

	// Whole says that Body is complete and decoded. A file that is not whole may lack the line that
	// forbids, so it counts as none and the host as unreachable. Only a Body of more than
	// robotstxt.MaxSize bytes may be cut: the rest would not be parsed anyway.
	Whole bool
}

// ReadResponse makes a Response from what an http.Client returned. It reads the body, as far as
// needed, undoes a content coding gzip that is still there, and closes the body. An error of the
// client, or a body that breaks off or cannot be decoded, gives a Response that counts as
// unreachable; check before whether it is the caller's own context that ended.
func ReadResponse(resp *http.Response, err error) Response {
	if err != nil || resp == nil {
		return Response{}
	}
	defer resp.Body.Close()
	text, err := decoded(resp)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(text, robotstxt.MaxSize+1))
	}
	r := Response{Status: resp.StatusCode, Header: resp.Header}
	if found(r.Status) {
		// A part was not requested. If one comes all the same, the rest is missing.
		r.Body, r.Whole = body, err == nil && r.Status != http.StatusPartialContent
	}
	return r
}

// decoded returns the body without its content coding. net/http undoes gzip by itself, but not
// where a transport asked for it explicitly, or the server sent it unasked.
func decoded(resp *http.Response) (io.Reader, error) {
	coding := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	switch strings.ToLower(coding) {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		// Empty blocks would be input without output, so that is limited as well.
		return gzip.NewReader(io.LimitReader(resp.Body, 2*robotstxt.MaxSize))
	default:
		return nil, fmt.Errorf("robots: unknown content coding %q", coding)
	}
}

// found reports whether the body of a response is a robots.txt.
func found(status int) bool { return status >= 200 && status < 300 }

// missing reports whether a status says that a host has no robots.txt. The RFC counts 429 among
// these. Like Google, this package does not: a server that asks for fewer requests has not said
// that there are no rules.
func missing(status int) bool {
	return status >= 300 && status < 500 && status != http.StatusTooManyRequests
}

// File returns what one response says, by RFC 9309 (2.3.1). It returns nil, which forbids
// everything, for a host that counts as unreachable. Redirects must have been followed, and a 304
// confirms an older File.
//
//	status            RFC 9309            meaning
//	2xx               2.3.1.1             the body is parsed
//	3xx               2.3.1.2             redirects left over after five: everything is allowed
//	4xx except 429    2.3.1.3             there is no file: everything is allowed
//	429               2.3.1.4 by choice   the server is overloaded: nothing is allowed
//	5xx               2.3.1.4             unreachable: nothing is allowed
//	all else          2.3.1.4             0 stands for no response at all: nothing is allowed
func (r Response) File() *robotstxt.File {
	switch {
	case found(r.Status) && (r.Whole || len(r.Body) > robotstxt.MaxSize):
		return robotstxt.Parse(r.Body)
	case missing(r.Status):
		return noFile
	}
	return nil
}

// noFile allows everything.
var noFile = robotstxt.Parse(nil)

var (
	// ErrDisallowed is wrapped by [DisallowedError].
	ErrDisallowed = errors.New("robots: disallowed by robots.txt")

	// ErrFull says that a URL was not looked up, because the requests in flight take all of
	// Options.MaxBytes, or Pending.Max items wait for them.
	ErrFull = errors.New("robots: too many requests in flight; store or abandon some first")
)

// DisallowedError says which URL may not be fetched, and why. It wraps [ErrDisallowed].
type DisallowedError struct {
	URL string

	// Verdict has the rule and its line. A Line of 0 means that the host's robots.txt could not be
	// fetched, so nothing else may be fetched for now.
	robotstxt.Verdict
}

// Error names the URL and the rule.
func (e *DisallowedError) Error() string {
	if e.Line == 0 {
		return "robots: " + e.URL + " is disallowed until its robots.txt can be fetched"
	}
	return fmt.Sprintf("robots: %s is disallowed by line %d of robots.txt: %s",
		e.URL, e.Line, e.Pattern)
}

// Unwrap returns [ErrDisallowed].
func (e *DisallowedError) Unwrap() error { return ErrDisallowed }
