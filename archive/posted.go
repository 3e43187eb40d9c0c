package archive

import (
	"bytes"
	"slices"
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

// links are the ID of a request or a response, and those of the records of the same visit.
type links struct {
	id   string
	with []string
}

func linksOf(fields warc.Fields) links {
	l := links{id: strings.Clone(fields.URI("WARC-Record-ID"))}
	for _, id := range fields.Values("WARC-Concurrent-To") {
		l.with = append(l.with, strings.Clone(strings.Trim(id, "<>")))
	}
	return l
}

// match reports whether a request and a response may belong to each other: one names the other, or both
// name none. Neighbors of one URL may be two visits, of which one has no request, or lost a record.
func (l links) match(other links) bool {
	return len(l.with)+len(other.with) == 0 || slices.Contains(l.with, other.id) ||
		slices.Contains(other.with, l.id)
}

// neighbor is a request record. The zero neighbor means none.
type neighbor struct {
	links
	url            string
	offset, length int64
	head           []byte
}

// isOf reports whether this is the request of a version, before or after its record.
func (n *neighbor) isOf(r *answered) bool {
	e := &r.entry
	return n.length > 0 && n.url == r.url && n.match(r.links) &&
		(n.offset+n.length == e.offset || e.offset+e.length == n.offset)
}

// answered is a version whose request may follow. Its key is not known before that.
type answered struct {
	links
	target
	file    string
	entry   entry
	ref     reference
	stores  bool     // its record may have a body to which others refer
	moved   bool     // by an erasure
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
	if request.isOf(held) {
		held.request = request
	} else {
		t.request = request
	}
	return a.indexAnswer(held)
}
