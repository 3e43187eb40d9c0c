package archive

import (
	"crypto/sha1"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// note is a capture on its way into an archive: what the index will say of it is found out once,
// before anything is compressed. It is a [ledger].
type note struct {
	archive *Archive
	capture Capture
	key     string
	long    string // the URL, if it cannot be had from the key
	status  int
	media   string
}

// note takes the capture over, so that both are one allocation. The head is parsed here and nowhere
// else: what the index says of a status and what makes a revisit of it must not differ.
func (a *Archive) note(c Capture) *note {
	n := &note{archive: a, capture: c}
	head := warc.HTTP{Head: c.Head}
	n.key, n.long = urlKey(c.URL)
	n.status, n.media = head.Status(), mediaType(head.Get("Content-Type"))
	return n
}

// repeats looks for the version that a capture, whose body has the digest sum, only repeats. Bodies
// of redirects and errors are often the same and say little: their heads matter.
func (n *note) repeats(sum *[sha1.Size]byte) (of original, err error) {
	c := &n.capture
	if n.status != 304 && (n.status != 200 || len(c.Body) == 0 || n.archive.keepRepeats ||
		c.Truncated != "") {
		return of, nil
	}
	_, err = n.archive.index.back(n.key, microseconds(c.Time), func(e *entry) bool {
		if e.kind != Changed {
			return true
		}
		if n.status == 304 {
			of = original{warc.ProfileNotModified, fromMicroseconds(e.time), e.digest}
		} else if e.digest.is(sum) && e.status == 200 && !e.truncated {
			of = original{warc.ProfileIdentical, fromMicroseconds(e.time), e.digest}
		}
		return false
	})
	return of, err
}

// written notes a capture in the index. The output is taken, so that the ends of a file are noted
// in order.
func (n *note) written(of original, sum *[sha1.Size]byte, loc Location, end int64) {
	c := &n.capture
	e := entry{time: microseconds(c.Time), offset: loc.Offset, length: loc.Length, status: n.status,
		truncated: c.Truncated != "", media: n.media, kind: kindOf(n.status, of.profile != ""),
		url: n.long}
	if e.kind == Unchanged {
		e.digest = of.digest.repeated()
	} else {
		e.digest = sha1Digest(sum)
	}
	n.archive.index.add(loc.File, n.key, &e, end)
}
