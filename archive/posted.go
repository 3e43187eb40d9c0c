package archive

import (
	"bytes"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// A request record is next to its response, before or after it. The index has the requests whose
// method is not GET: two responses to a form are not versions of one page, and exports distinguish
// them by their requests.

// isPosted reports whether the method of a request is not GET.
func isPosted(request []byte) bool {
	return len(request) > 0 && !bytes.HasPrefix(request, []byte("GET "))
}

// requestHeadOf returns the head in a request record, or nil if it is not that of an HTTP message.
func requestHeadOf(rec *warc.Record) ([]byte, error) {
	if !isHTTP(rec.Get("Content-Type")) {
		return nil, nil
	}
	message, err := rec.HTTP()
	if err != nil {
		return nil, err
	}
	return message.Head, nil
}

// neighbor is a request record. The zero neighbor means none.
type neighbor struct {
	url            string
	offset, length int64
	head           []byte
}

// isBefore reports whether the record at offset follows this one and has the same URL.
func (n *neighbor) isBefore(url string, offset int64) bool {
	return n.length > 0 && n.offset+n.length == offset && n.url == url
}

// answered is a version whose request may follow. Its key is not known before that.
type answered struct {
	file    string
	url     string
	part    string // of a 206, by its own head
	entry   entry
	ref     reference
	stores  bool     // its record may have a body to which others refer
	end     int64    // of the indexed part of the file with it
	request neighbor // the zero neighbor means that there is none
}

// pair is called for each record. It indexes the version before, which has the request if that is
// one, and otherwise keeps the request for the version after it. The zero neighbor is another kind
// of record, or the end of the file.
func (a *Archive) pair(t *tail, request neighbor) error {
	held := t.held
	if t.held = nil; held == nil {
		t.request = request
		return nil
	}
	t.request = neighbor{}
	if request.length > 0 && request.url == held.url &&
		held.entry.offset+held.entry.length == request.offset {
		held.request = request
	} else {
		t.request = request
	}
	return a.indexAnswer(held)
}
