package archive

import (
	"bytes"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// A request record is next to its response, before or after it. The index has the requests whose
// method is not GET: two responses to a form are not versions of one page, and exports distinguish
// them by their requests.

// isPosted reports whether the method of a request is not GET.
func isPosted(request []byte) bool {
	return len(request) > 0 && !bytes.HasPrefix(request, []byte("GET "))
}

// readsPosted is isPosted for a request record.
func readsPosted(rec *warc.Record) (bool, error) {
	if !isHTTP(rec.Get("Content-Type")) {
		return false, nil
	}
	message, err := rec.HTTP()
	return err == nil && isPosted(message.Head), err
}

// neighbor is the last request or response read. The zero neighbor means none.
type neighbor struct {
	url            string
	offset, length int64
	posted         bool // of a request

	key   string // of a response
	entry entry
}

// isBefore reports whether the record at offset follows this one and has the same URL.
func (n *neighbor) isBefore(url string, offset int64) bool {
	return n.length > 0 && n.offset+n.length == offset && n.url == url
}

// pairRequest links a request to the response before it, or keeps it for the response after it.
func (a *Archive) pairRequest(t *tail, request neighbor) {
	response := t.response
	t.request, t.response = request, neighbor{}
	if !response.isBefore(request.url, request.offset) {
		return
	}
	t.request = neighbor{}
	if request.posted {
		response.entry.posted = -request.length
		a.index.replace(response.key, &response.entry)
	}
}

// pairResponse links a response to the request before it, or keeps it for the request after it.
func (t *tail) pairResponse(url, key string, e *entry) {
	request := t.request
	t.request, t.response = neighbor{}, neighbor{}
	switch {
	case !request.isBefore(url, e.offset):
		t.response = neighbor{url: strings.Clone(url), offset: e.offset, length: e.length, key: key}
	case request.posted:
		e.posted = request.length
	}
}
