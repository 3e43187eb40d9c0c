package archive

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Response returns a version as a client of net/http gets a response. Its body has no content coding,
// as that of [Archive.Body], and reads from the archive: close it. It ends like that of
// [warc.HTTP.Decoded]. An unchanged version has the body
// of the version that it repeats; if it is a 304, its fields update those of that version (RFC 9111,
// section 3.2), and its status is that version's. The charset is in Content-Type, if the server sent
// one.
//
// Request has the method that was used, with the fields of the request if it was not GET. So the
// response to HEAD has no body, and one to POST is told from the page.
func (a *Archive) Response(v Version) (*http.Response, error) {
	head, media, err := a.head(v.Location, v.isIn)
	if err != nil {
		return nil, err
	}
	resp := head.response(media)
	if v.Content == (Location{}) && v.Status != http.StatusNotModified {
		return nil, fmt.Errorf("%w: the record of %.200s refers to a missing body", ErrNotFound, v.URL)
	}
	if v.Content != v.Location && v.Content != (Location{}) && v.Status == http.StatusNotModified {
		kept, media, err := a.head(v.Content, v.hasBody)
		if err != nil {
			return nil, err
		}
		fresh := resp.Header
		resp = kept.response(media)
		update(resp.Header, fresh)
	}
	if resp.Request, err = a.request(v); err != nil {
		return nil, err
	}
	resp.Body = http.NoBody
	if v.Content == (Location{}) || resp.Request.Method == http.MethodHead {
		return resp, nil
	}
	return resp, a.setBody(resp, v)
}

// Validators returns the fields with which to ask a server whether a version is still the current
// one: If-None-Match and If-Modified-Since. They are "" if the server did not give any.
func (a *Archive) Validators(v Version) (etag, lastModified string, err error) {
	for i, loc := range []Location{v.Location, v.Content} {
		if loc == (Location{}) {
			continue
		}
		head, _, err := a.head(loc, []func(*warc.Record) bool{v.isIn, v.hasBody}[i])
		if err != nil {
			return "", "", err
		}
		if etag, lastModified = head.Get("ETag"), head.Get("Last-Modified"); etag+lastModified != "" {
			break // a 304 may lack what the version that it confirms has
		}
	}
	return etag, lastModified, nil
}

// update replaces fields by fresh ones, but those that describe a body: the body is as it was stored.
func update(stored, fresh http.Header) {
	for name, values := range fresh {
		switch name {
		case "Content-Encoding", "Content-Length", "Content-Range", "Transfer-Encoding":
		default:
			stored[name] = values
		}
	}
}

// head reads the head of a record, and its end, where damage shows. Other records than HTTP messages
// have a type alone.
func (a *Archive) head(loc Location, is func(*warc.Record) bool) (h responseHead, media string, err error) {
	rec, err := a.openAs(loc, is)
	if err != nil {
		return h, "", err
	}
	defer rec.release()
	if media = rec.Get("Content-Type"); isHTTP(media) {
		message, err := rec.HTTP()
		if err != nil {
			return h, "", err
		}
		h.Head, h.protocol, media = message.Head, rec.Protocol(), ""
	}
	return h, media, rec.Close()
}

// responseHead is the head of a stored message, and the protocol in which it was sent, if known.
type responseHead struct {
	warc.HTTP
	protocol string
}

// response returns a response without a body.
func (h *responseHead) response(media string) *http.Response {
	if len(h.Head) == 0 {
		return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1",
			ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {media}}}
	}
	line, _, _ := bytes.Cut(h.Head, []byte("\n"))
	version, status, _ := strings.Cut(strings.TrimRight(string(line), "\r"), " ")
	resp := &http.Response{Status: strings.TrimLeft(status, " "), StatusCode: h.Status(), Header: h.Header(),
		Proto: cmp.Or(h.protocol, version)}
	resp.ProtoMajor, resp.ProtoMinor, _ = http.ParseHTTPVersion(resp.Proto)
	return resp
}

// request returns the request of a version, without its body.
func (a *Archive) request(v Version) (*http.Request, error) {
	target, err := url.Parse(v.URL)
	if err != nil {
		target = &url.URL{Opaque: v.URL} // found in the wild, and served
	}
	req := &http.Request{Method: http.MethodGet, URL: target, Host: target.Host, Header: http.Header{}}
	if v.Request == (Location{}) {
		return req, nil
	}
	head, _, err := a.head(v.Request, v.isAskedIn)
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(head.Head, []byte("\n"))
	req.Method, _, _ = strings.Cut(string(line), " ")
	req.Header = head.Header()
	return req, nil
}

// setBody opens the body of a response.
func (a *Archive) setBody(resp *http.Response, v Version) error {
	rec, err := a.openAs(v.Content, v.hasBody)
	if err != nil {
		return err
	}
	body, size, decoded, err := openBody(rec.Record, &v, 0)
	if err != nil {
		rec.release()
		return err
	}
	resp.ContentLength = size
	if resp.Header.Del("Transfer-Encoding"); decoded {
		resp.Uncompressed = true
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	}
	resp.Body = &responseBody{body, rec}
	return nil
}

// responseBody is a body that releases its record. It is not safe for concurrent use.
type responseBody struct {
	io.Reader
	rec *opened
}

// Close releases the record.
func (b *responseBody) Close() error {
	b.rec.release()
	b.Reader = closedBody{}
	return nil
}

type closedBody struct{}

func (closedBody) Read([]byte) (int, error) { return 0, http.ErrBodyReadAfterClose }
