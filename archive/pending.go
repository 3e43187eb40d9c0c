package archive

import (
	"crypto/sha1"
	"errors"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// pending is a capture being appended, and its future index entry, which is computed once before
// anything is compressed. It is a [indexer].
type pending struct {
	archive *Archive
	capture Capture
	key     string
	long    string // the URL, if it cannot be derived from the key
	status  int
	media   string
	coded   bool      // the body has a content coding
	posted  bool      // the method was not GET
	prior   time.Time // of the last changed version, if there is one
}

// original is the version whose body a capture repeats. The zero original means none.
type original struct {
	profile   string
	url       string
	time      time.Time
	kind      Kind // of the capture: Changed if only another URL has the body
	digest    digest
	media     string
	truncated bool
	coded     bool
	content   address
}

// pending copies the capture into its result, for one allocation. The head is parsed only here, so
// that the index entry and the choice of a revisit record agree on the status.
func (a *Archive) pending(c Capture) *pending {
	n := &pending{archive: a}
	n.capture, n.capture.Protocol = c.asHTTP1()
	n.capture.redactHeads(a.redact)
	head := warc.HTTP{Head: n.capture.Head}
	n.status, n.media = head.Status(), mediaType(head.Get("Content-Type"))
	n.coded = head.Get("Content-Encoding") != ""
	n.key, n.long = keyOf(c.URL, askedOf(n.capture.Request, n.status, head.Get("Content-Range")))
	n.posted = isPosted(c.Request)
	return n
}

// repeats finds the version with the same body, whose digest is sum. If the index is damaged, it
// finds none: to store a body again loses nothing.
func (n *pending) repeats(sum *[sha1.Size]byte) (of original, err error) {
	if of, err = n.search(sum); errors.Is(err, ErrIndex) {
		return original{}, nil
	}
	if m := n.archive.erasing.Load(); m != nil && of.profile != "" {
		if key, _ := urlkey.Of(of.url); m.matches(key, microseconds(of.time), of.digest) {
			return original{}, err
		}
	}
	return of, err
}

// search is repeats with an intact index. Redirects and errors are always stored: their bodies are
// often equal, but their heads matter. So is a body that is another document than an equal one, since only
// one of them has a content coding: it is decoded by the head that is stored with it.
func (n *pending) search(sum *[sha1.Size]byte) (of original, err error) {
	a, c := n.archive, &n.capture
	if c.about != "" {
		return of, a.remains(c)
	}
	e, found, err := a.index.changed(n.key, microseconds(c.Time))
	if err != nil {
		return of, err
	}
	if found {
		n.prior = fromMicroseconds(e.time)
	}
	whole := n.status == 200 && c.bodySize() > 0 && c.Truncated == ""
	switch {
	case found && n.status == 304:
		return a.originalOf(warc.ProfileNotModified, c.URL, &e), nil
	case found && whole && e.digest.is(sum) && e.status == 200 && !e.truncated && e.coded == n.coded:
		return a.originalOf(warc.ProfileIdentical, c.URL, &e), nil
	case whole && n.shares():
		return n.shared(sha1Digest(sum))
	}
	return of, nil
}

// originalOf names a changed version as the one that a capture repeats. If its body is stored under
// another URL, it names that one: a revisit record should refer to a record with a body.
func (a *Archive) originalOf(profile, url string, e *entry) original {
	of := original{profile: profile, url: url, time: fromMicroseconds(e.time), kind: Unchanged,
		digest: e.digest, media: e.media, truncated: e.truncated, coded: e.coded, content: e.body()}
	// Digests of other programs are not trusted: a wrong one would lose a body.
	trusted := profile == warc.ProfileNotModified || isOurs(a.index.name(of.content.file))
	if e.content.length == 0 && trusted {
		return of
	}
	stored, ok := a.bodyAt(of.content, e.digest)
	if !ok {
		return original{}
	}
	of.url, of.time = stored.url, stored.time
	return of
}

// written adds a capture, which begins at start in its file, to the index. Its output is locked, so
// that the ends of a file are recorded in order.
func (n *pending) written(of original, sum *[sha1.Size]byte, start int64, loc Location, end int64) {
	c := &n.capture
	if c.about != "" {
		n.archive.index.add(loc.File, "", nil, "", end)
		return
	}
	e := entry{time: microseconds(c.Time), offset: loc.Offset, length: loc.Length, status: n.status,
		truncated: c.Truncated != "", coded: n.coded, media: n.media, kind: kindOf(n.status, of.kind == Unchanged),
		url: n.long}
	body := digest("")
	switch {
	case of.profile != "":
		e.content, e.digest = of.content, of.digest
		e.media, e.truncated, e.coded = of.media, of.truncated, of.coded
	case e.kind == Unchanged: // a 304 for an unknown version
	default:
		e.digest = sha1Digest(sum)
		if n.status == 200 && c.Truncated == "" && c.bodySize() >= minShared && isPlain(n.key) {
			body = e.digest
		}
	}
	if e.kind != Changed && !n.prior.IsZero() {
		e.prior, e.hasPrior = microseconds(n.prior), true
	}
	if n.posted {
		e.posted = loc.Offset - start
	}
	n.archive.index.add(loc.File, n.key, &e, body, end)
}
