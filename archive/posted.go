package archive

import (
	"bytes"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// A request lies beside its response, before or after it. The index knows those whose method is not
// GET: two answers to a form are not versions of one page, and exports tell them apart by what was
// sent.

// isPosted reports whether the method of a request is not GET.
func isPosted(request []byte) bool {
	return len(request) > 0 && !bytes.HasPrefix(request, []byte("GET "))
}

// readsPosted reports so of a request record.
func readsPosted(rec *warc.Record) (bool, error) {
	if !isHTTP(rec.Get("Content-Type")) {
		return false, nil
	}
	message, err := rec.HTTP()
	return err == nil && isPosted(message.Head), err
}

// neighbor is a request or a response that was read, until the next one comes. The zero neighbor
// stands for none.
type neighbor struct {
	url            string
	offset, length int64
	posted         bool // of a request

	key   string // of a response
	entry entry
}

// beside reports whether a record follows this one, and is about the same URL.
func (n *neighbor) beside(url string, offset int64) bool {
	return n.length > 0 && n.offset+n.length == offset && n.url == url
}

// pairRequest notes the request of the response before it, or keeps it for the response after it.
func (a *Archive) pairRequest(t *tail, request neighbor) {
	response := t.response
	t.request, t.response = request, neighbor{}
	if !response.beside(request.url, request.offset) {
		return
	}
	t.request = neighbor{}
	if request.posted {
		response.entry.posted = -request.length
		a.index.replace(response.key, &response.entry)
	}
}

// pairResponse notes the request before a response in its entry, or keeps the response for the
// request after it.
func (t *tail) pairResponse(url, key string, e *entry) {
	request := t.request
	t.request, t.response = neighbor{}, neighbor{}
	switch {
	case !request.beside(url, e.offset):
		t.response = neighbor{url: strings.Clone(url), offset: e.offset, length: e.length, key: key}
	case request.posted:
		e.posted = request.length
	}
}
