package archivehttp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// ErrNotRecorded is wrapped by the error of a [Player] for a request that the archive cannot answer.
var ErrNotRecorded = errors.New("archivehttp: not recorded")

var errNoURL = errors.New("archivehttp: nil Request.URL")

// Player is an http.RoundTripper that answers requests from an archive, as its servers did at a
// time. Tests of a client need no server then:
//
//	client := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
//
// A request is answered if one with the same URL and method was recorded: the last one by Time. The body of a
// POST must be the same, too. A range gets the last part that the server sent for it, or, if it never did,
// the last page: later pages may have been for requests without one. Parts that a server sent unasked are not
// played. All other fields are ignored, but a 304 answers only a request with If-None-Match or
// If-Modified-Since; others get what it confirms. A GET with a body is not answered, as the archive does not
// tell its answers from those without. Redirects, errors and truncated bodies come as they came. Bodies come
// without their content coding, whatever the request accepts, as [archive.Archive.Response] returns them:
// what is not in its coding, or follows its end, is no error as it is to net/http. One fails that decodes to
// more than 256 MiB, or to more than a megabyte and 200 times its size. Cookies are there only if the tape
// was recorded with an [archive.Options.Redact] that keeps Set-Cookie.
//
// Its fields must not change once it is in use. Its methods are safe for concurrent use.
type Player struct {
	Archive *archive.Archive

	// Time is the time as of which the archive answers. The zero Time means now.
	Time time.Time

	// Missing sends the requests that the archive cannot answer, such as a [Transport] that records
	// them. nil means that they fail with [ErrNotRecorded].
	Missing http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, errors.Join(err, closeBody(req))
	}
	if req.URL == nil {
		return nil, errors.Join(errNoURL, closeBody(req))
	}
	sent, err := readBody(req)
	if err != nil {
		return nil, err
	}
	resp, err := p.answer(req, sent)
	if errors.Is(err, archive.ErrNotFound) {
		if p.Missing == nil {
			return nil, fmt.Errorf("%w: %s %s: record it with a Transport, or set Missing, also for a GET with a body",
				ErrNotRecorded, method(req), req.URL.Redacted())
		}
		if req.Body != nil && req.Body != http.NoBody {
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(sent))
		}
		return p.Missing.RoundTrip(req)
	}
	if err != nil {
		return nil, fmt.Errorf("archivehttp: replay %s: %w", req.URL.Redacted(), err)
	}
	return resp, nil
}

func method(req *http.Request) string { return cmp.Or(req.Method, http.MethodGet) }

func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

// readBody reads the body of a request, which a RoundTripper has to close.
func readBody(req *http.Request) (sent []byte, err error) {
	if req.Body != nil {
		sent, err = io.ReadAll(req.Body)
	}
	return sent, errors.Join(err, closeBody(req))
}

// answer returns the recorded response to a request.
func (p *Player) answer(req *http.Request, sent []byte) (*http.Response, error) {
	v, err := p.find(req, sent)
	if err != nil {
		return nil, err
	}
	resp, err := p.Archive.Response(v)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	if v.Status == http.StatusNotModified && isConditional(req) {
		return resp, p.notModified(resp, v)
	}
	if resp.StatusCode == http.StatusNotModified {
		return nil, archive.ErrNotFound // what it confirms is not here
	}
	if v.Truncated {
		resp.Body = cut{resp.Body}
	}
	resp.Header.Del("Transfer-Encoding") // which net/http keeps to itself
	if length, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = length // also of a truncated body, and of none
	} else if method(req) == http.MethodHead {
		resp.ContentLength = -1
	}
	return resp, nil
}

// isConditional reports whether a request asks for a page only if it has changed.
func isConditional(req *http.Request) bool {
	return req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != ""
}

// notModified makes the response to a 304 one as it came.
func (p *Player) notModified(resp *http.Response, v archive.Version) error {
	err := resp.Body.Close()
	rec, failed := p.Archive.Read(v.Location)
	if failed != nil {
		return errors.Join(err, failed)
	}
	message, failed := rec.HTTP()
	if failed == nil {
		resp.Header = message.Header()
		resp.Header.Del("Transfer-Encoding")
		resp.StatusCode, resp.Status = http.StatusNotModified, "304 "+http.StatusText(http.StatusNotModified)
		resp.Body, resp.ContentLength, resp.Uncompressed = http.NoBody, 0, false
	}
	return errors.Join(err, failed, rec.Close())
}

// cut is a body that ends early, as it did for the client that recorded it.
type cut struct{ io.ReadCloser }

// Read implements io.Reader.
func (c cut) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// find returns the version that answers a request, or [archive.ErrNotFound].
func (p *Player) find(req *http.Request, sent []byte) (v archive.Version, err error) {
	// The URL is that which a Transport records.
	var c archive.Capture
	c.FromResponse(&http.Response{Request: req}, nil)
	get, byteRange := method(req) == http.MethodGet, req.Header.Get("Range")
	switch {
	case get && len(sent) > 0:
		return v, archive.ErrNotFound
	case get && byteRange == "":
		return p.Archive.At(c.URL, p.Time) // one look-up, however many versions there are
	}
	answers, err := p.Archive.Answers(c.URL, method(req), byteRange)
	if !get && byteRange != "" && err == nil { // which the server may have ignored
		var whole []archive.Version
		whole, err = p.Archive.Answers(c.URL, method(req), "")
		answers = append(whole, answers...)
	}
	if err != nil {
		return v, err
	}
	for _, v := range slices.Backward(answers) {
		if !p.Time.IsZero() && v.Time.After(p.Time) {
			continue
		}
		if get {
			return v, nil
		}
		if same, err := p.isAnswerTo(&v, sent); same || err != nil {
			return v, err
		}
	}
	if get {
		return p.Archive.At(c.URL, p.Time)
	}
	return v, archive.ErrNotFound
}

// isAnswerTo reports whether the recorded request of a version has the same body. If only its
// beginning was recorded, that and the length are compared.
func (p *Player) isAnswerTo(v *archive.Version, sent []byte) (bool, error) {
	if v.Request == (archive.Location{}) {
		return len(sent) == 0, nil
	}
	rec, err := p.Archive.Read(v.Request)
	if err != nil {
		return false, err
	}
	defer rec.Close() // read to its end, or of no interest
	message, err := rec.HTTP()
	if err != nil {
		return false, err
	}
	recorded, err := io.ReadAll(io.LimitReader(message.Body, int64(len(sent))+1))
	if err != nil {
		return false, err
	}
	if rec.Get("WARC-Truncated") == "" {
		return bytes.Equal(sent, recorded), nil
	}
	if length := message.Get("Content-Length"); length != "" && length != strconv.Itoa(len(sent)) {
		return false, nil
	}
	return bytes.HasPrefix(sent, recorded), nil
}
