package archive

import (
	"crypto/sha1"
	"io"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// minShared is the size of a body below which a revisit record saves nothing.
const minShared = 1 << 10

// shares reports whether other URLs may have the body of a capture, and it theirs.
func (n *note) shares() bool { return n.archive.share && n.capture.bodySize() >= minShared }

// shared looks for a record with that body, of any URL. The index only has its address, so the
// record is asked what it is: it also tells its URL and its date, which a revisit record has to
// name.
func (a *Archive) shared(d digest) (of original, err error) {
	at, found, err := a.index.body(d)
	if err != nil || !found {
		return of, err
	}
	there, ok, err := a.holder(at, d)
	if err != nil || !ok {
		return of, err
	}
	return original{profile: warc.ProfileIdentical, url: there.url, time: there.time, kind: Changed,
		digest: d, media: there.media, content: at}, nil
}

// holder is the record that holds a body.
type holder struct {
	url   string
	time  time.Time
	media string
}

// holder reads the record at an address. It is not ok if that is not a response with that digest:
// the file may be gone, or another one. Of a file that another program wrote the body is hashed:
// whoever can make us import a file must not be able to put its bodies in place of those we fetch.
func (a *Archive) holder(at address, d digest) (h holder, ok bool, err error) {
	loc := a.location(at)
	rec, err := a.open(loc)
	if err != nil {
		return h, false, nil // what cannot be read is not referred to
	}
	defer rec.release()
	date, dated := rec.Fields().Date()
	h = holder{url: rec.Fields().URI("WARC-Target-URI"), time: date}
	if rec.Type() != "response" || !isHTTP(rec.Get("Content-Type")) || !dated ||
		urlFault(h.url) != "" || parseDigest(rec.Get("WARC-Payload-Digest")) != d && isMarked(loc.File) {
		return h, false, nil
	}
	message, err := rec.HTTP()
	if err != nil {
		return h, false, nil
	}
	h.media = mediaType(message.Get("Content-Type"))
	if isMarked(loc.File) {
		return h, true, nil
	}
	sum := sha1.New()
	if _, err := io.CopyN(sum, message.Body, MaxRaw); err != io.EOF {
		return h, false, nil // damage, or more than is worth reading
	}
	return h, d.is((*[sha1.Size]byte)(sum.Sum(nil))), nil
}

// indexBodies makes the bodies of all versions known by their digests, where that was not asked for
// when they were appended.
func (a *Archive) indexBodies() error {
	x := a.index
	for l, err := range x.scan(urlkey.All) {
		if err != nil {
			return err
		}
		e := &l.entry
		if e.kind == Changed && e.content.length == 0 && e.status == 200 && !e.truncated &&
			e.length >= minShared/8 && len(e.digest) == 1+sha1.Size {
			x.tree.Put(bodyKey(e.digest), e.address().append(nil))
		}
		if err := x.admit(); err != nil {
			return err
		}
	}
	x.mu.Lock()
	x.bodies, x.dirty = true, true
	x.mu.Unlock()
	return x.commit()
}
