package archive

import (
	"crypto/sha1"
	"io"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// minShared is the size of a body below which a revisit record saves no space.
const minShared = 1 << 10

// shares reports whether a capture may share its body with other URLs.
func (n *pending) shares() bool { return n.archive.share && n.capture.bodySize() >= minShared }

// shared finds a record with that body, under any URL. The index has only its address, so the
// record is read: a revisit record must name its URL and date.
func (n *pending) shared(d digest) (of original, err error) {
	a := n.archive
	at, found, err := a.index.body(d)
	if err != nil || !found {
		return of, err
	}
	stored, ok := a.bodyAt(at, d)
	if !ok || stored.coded != n.coded {
		return of, nil
	}
	return stored, nil
}

// bodyAt reads the record at an address, as the original of captures of other URLs. It is not ok unless that is an
// intact response whose body has the digest: the file may be damaged, missing or replaced, and the digests in an
// imported one forged.
func (a *Archive) bodyAt(at address, d digest) (of original, ok bool) {
	loc := a.location(at)
	rec, err := a.open(loc)
	if err != nil {
		return of, false // an unreadable record must not be referenced
	}
	defer rec.release()
	date, dated := rec.Fields().Date()
	url := rec.Fields().URI("WARC-Target-URI")
	if rec.Type() != "response" || !isHTTP(rec.Get("Content-Type")) || !dated || urlFault(url) != "" ||
		parseDigest(rec.Get("WARC-Payload-Digest")) != d && isOurs(loc.File) {
		return of, false
	}
	message, err := rec.HTTP()
	if err != nil {
		return of, false
	}
	sum := sha1.New()
	if _, err := io.CopyN(sum, message.Body, MaxRaw); err != io.EOF || rec.Close() != nil {
		return of, false // damaged, or too large to be worth reading
	}
	of = original{profile: warc.ProfileIdentical, url: url, time: date, kind: Changed, digest: d,
		media: mediaType(message.Get("Content-Type")), coded: message.Get("Content-Encoding") != "", content: at}
	return of, d.is((*[sha1.Size]byte)(sum.Sum(nil)))
}

// indexBodies indexes the bodies of all versions by their digests, in an archive written without
// Share.
func (a *Archive) indexBodies() error {
	x := a.index
	for l, err := range x.scan(urlkey.All) {
		if err != nil {
			return err
		}
		e := &l.entry
		if e.kind == Changed && e.content.length == 0 && e.status == 200 && !e.truncated &&
			e.length >= minShared/8 && len(e.digest) == 1+sha1.Size && isPlain(l.url) {
			x.lsm().Put(bodyKey(e.digest), e.address().append(nil))
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
