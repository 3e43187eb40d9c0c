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

// neighbor is a request record, without a head if it is not an HTTP message. The zero neighbor means none.
type neighbor struct {
	links
	url            string
	offset, length int64
	head           []byte
}

// requestOf returns a request record. Its length is not known before the record is closed.
func requestOf(rec *warc.Record, own links) (n neighbor, err error) {
	n = neighbor{links: own, offset: rec.Offset, url: strings.Clone(rec.Fields().URI("WARC-Target-URI"))}
	if !isHTTP(rec.Get("Content-Type")) {
		return n, nil
	}
	message, err := rec.HTTP()
	if err != nil {
		return n, err
	}
	n.head = message.Head
	return n, nil
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
	revisit bool     // its record is a revisit
	moved   bool     // by an erasure
	end     int64    // of the indexed part of the file with it
	request neighbor // the zero neighbor means that there is none
}

// key returns the key of the version, and what was asked, and sets its URL if the key does not determine it.
func (r *answered) key() (string, asked) {
	q := askedOf(r.request.head, r.entry.status, r.part)
	if q.method == "" {
		q.method = keyText(r.method[:min(len(r.method), maxMethod)])
	}
	key, long := keyOf(r.url, q)
	r.entry.url = long
	return key, q
}

// pairs finds the requests of the versions in a file. Its zero value is ready to use, by one goroutine at a
// time.
type pairs struct {
	request neighbor  // the last record, if it is a request without a version
	held    *answered // the last record, if it is a version without a request before it
}

// next takes the next record: a request, a version, or neither, as at the end of the file. It returns the
// version whose request is known now, if any: this one, or the one before.
func (p *pairs) next(request neighbor, found *answered) *answered {
	before, held := p.request, p.held
	p.request, p.held = request, found
	switch {
	case held != nil && request.isOf(held):
		held.request, p.request = request, neighbor{}
	case held == nil && found != nil && before.isOf(found):
		found.request, p.held = before, nil
		return found
	}
	return held
}
