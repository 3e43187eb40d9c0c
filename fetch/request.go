package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Request is a request for which [Client.Get] is not enough.
type Request struct {
	// URL is absolute, http or https.
	URL string
	// Method is GET or HEAD; "" means GET.
	Method string
	// Header has fields for this request, which replace those of the Options; nil means none.
	Header http.Header
	// Validators make the request conditional; the zero value does not.
	Validators Validators
	// MaxBody replaces Options.MaxBody for this request; 0 means that one.
	MaxBody int64
	// Addr is where the request goes, whatever its host name resolves to; invalid means wherever
	// the name leads. A kept connection to another address is not used. Set it if a delay or a
	// budget was counted for an address, as package scheduler does: between the count and the
	// request, a name may come to mean another address, or an old connection may still lead to a
	// former one. Options.Reach holds for it. A URL whose host is an address goes there, and so
	// does a request through a proxy that resolves names.
	Addr netip.Addr
}

// Validators identify a version of a page. With those of an earlier response, the server may answer
// 304 without a body if the page has not changed since: see [Response.NotModified]. The zero
// Validators get the page in any case.
type Validators struct{ ETag, LastModified string }

// prepare returns the request that net/http sends for r and its normalized URL, or why it cannot be
// sent.
func (c *Client) prepare(ctx context.Context, r *Request) (*http.Request, string, *Error) {
	if r.Method != "" && r.Method != http.MethodGet && r.Method != http.MethodHead {
		err := fmt.Errorf("method %q is neither GET nor HEAD", r.Method)
		return nil, "", &Error{Kind: BadURL, Err: err}
	}
	page, wire, err := c.target(r.URL)
	if err != nil {
		return nil, "", err
	}
	header, err := c.fields(r, page)
	if err != nil {
		return nil, "", err
	}
	req := (&http.Request{
		Method:     cmp.Or(r.Method, http.MethodGet),
		URL:        wire,
		Host:       wire.Host,
		Header:     header,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}).WithContext(ctx)
	c.addCookies(req, page)
	return req, page, nil
}

// fields returns the header of a request for page.
func (c *Client) fields(r *Request, page string) (http.Header, *Error) {
	// The shared header is copied only if something is added.
	header := c.header
	if r.Validators != (Validators{}) || len(r.Header) > 0 || c.opts.Jar != nil {
		header = maps.Clone(header)
	}
	if err := checkFields(r.Header); err != nil {
		return nil, &Error{Kind: BadURL, Err: err}
	}
	part, coded := false, false
	for name, values := range r.Header {
		name = http.CanonicalHeaderKey(name)
		part, coded = part || name == "Range", coded || name == "Accept-Encoding"
		header[name] = values
	}
	if part && !coded {
		delete(header, "Accept-Encoding") // the middle of a coded page cannot be decoded
	}
	// These are bytes from a server, so they are checked like any input.
	if v := r.Validators.ETag; v != "" && isFieldValue(v) {
		header["If-None-Match"] = []string{v}
	}
	if v := r.Validators.LastModified; v != "" && isFieldValue(v) {
		header["If-Modified-Since"] = []string{v}
	}
	return header, nil
}

// accept is a short form of what browsers send. Without it, some servers answer 406 or send
// something other than a page.
const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// headers returns the fields that a Get sends, and those that a RoundTripper adds to requests that
// lack them: what the caller has asked for, and nothing that net/http would not add.
func (o *Options) headers() (get, complete http.Header) {
	complete = http.Header{"User-Agent": {o.UserAgent}, "Accept-Encoding": {o.codings()}}
	for name, values := range o.Header {
		complete[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	get = maps.Clone(complete)
	if _, ok := get["Accept"]; !ok {
		get["Accept"] = []string{accept}
	}
	return get, complete
}

// connectionFields are those that net/http checks over HTTP/2, when it is too late to tell whose fault
// a failure is, with the values that it takes.
var connectionFields = map[string][]string{
	"Connection": {"", "close", "keep-alive"}, "Transfer-Encoding": {"", "chunked"}, "Upgrade": {""},
}

// unsendable says what net/http would refuse of a request once it has a connection, when it is too late to
// tell whose fault that is. A path that HTTP/1 refuses it would send over HTTP/2, again and again, as servers
// end the connection for it.
func unsendable(req *http.Request) error {
	for name := range req.Trailer {
		if slices.Contains(noTrailers, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("the field %s cannot be a trailer", name)
		}
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.ContainsFunc(req.URL.RequestURI(), control) {
		return errors.New("control character in Request.URL")
	}
	return nil
}

var noTrailers = []string{"Content-Length", "Trailer", "Transfer-Encoding"}

// checkFields says what keeps fields from being sent.
func checkFields(h http.Header) error {
	seen := make(map[string]bool, len(h))
	for name, values := range h {
		if err := checkField(name, values); err != nil {
			return err
		}
		name = http.CanonicalHeaderKey(name)
		if seen[name] {
			return fmt.Errorf("the field %s is there in two spellings", name)
		}
		seen[name] = true
	}
	return nil
}

// checkField says what keeps a field from being sent. net/http takes the Host from the URL.
func checkField(name string, values []string) error {
	if !isToken(name) {
		return fmt.Errorf("%q is not the name of a header field", name)
	}
	if http.CanonicalHeaderKey(name) == "Host" {
		return errors.New("the field Host is that of the URL")
	}
	allowed, ours := connectionFields[http.CanonicalHeaderKey(name)]
	if ours && (len(values) > 1 || len(values) == 1 && !slices.Contains(allowed, strings.ToLower(values[0]))) {
		return fmt.Errorf("the field %s is that of the connection", name)
	}
	for _, value := range values {
		if !isFieldValue(value) {
			return fmt.Errorf("control character in the field %s", name)
		}
	}
	return nil
}

// isFieldValue reports whether s may be the value of a header field: no control characters, which
// could end the field and begin another.
func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
