package archive

import (
	"crypto/sha1"
	"io"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// target is what a record answers: its URL, the part of which it is, by Content-Range, and the method of
// the request if a field says so.
type target struct{ url, part, method string }

// clone returns a target that does not keep the header of its record in memory.
func (t target) clone() target {
	return target{strings.Clone(t.url), strings.Clone(t.part), strings.Clone(t.method)}
}

// entryOf returns the index entry of a record. Requests, metadata and conversions are not versions
// of their URL; neither are records without a URL or a date. The body is written to payload if that
// is not nil.
func entryOf(rec *warc.Record, payload io.Writer) (e entry, of target, ok bool, err error) {
	kind, fields := rec.Type(), rec.Fields()
	date, dated := fields.Date()
	url := fields.URI("WARC-Target-URI")
	if kind != "response" && kind != "revisit" && kind != "resource" || !dated || url == "" ||
		len(url) > maxURL || strings.ContainsAny(url, "\x00"+askedMark) || strings.IndexByte(url, 0xff) >= 0 {
		return e, of, false, nil
	}
	of.url, of.method = url, fields.Get(methodField)
	e = entry{time: microseconds(date), offset: rec.Offset, truncated: !isComplete(fields),
		digest: parseDigest(fields.Get("WARC-Payload-Digest"))}
	contentType := fields.Get("Content-Type")
	var body io.Reader = rec
	if isHTTP(contentType) {
		h, err := rec.HTTP()
		if err != nil {
			return e, of, false, err
		}
		e.status, e.media, body = h.Status(), mediaType(h.Get("Content-Type")), h.Body
		of.part, e.coded = h.Get("Content-Range"), h.Get("Content-Encoding") != ""
	} else if e.media = mediaType(contentType); kind != "revisit" {
		e.status = 200 // a file, or a response of a protocol without status codes
	}
	e.kind = kindOf(e.status, kind == "revisit")
	if e.kind == Unchanged {
		e.digest = e.digest.repeated()
	}
	if e.digest != "" || e.kind != Changed {
		if payload != nil {
			_, err = io.Copy(payload, body)
		}
		return e, of, true, err
	}
	// Without a digest, no later version could be recognized as unchanged.
	sum := sha1.New()
	if payload != nil {
		body = io.TeeReader(body, payload)
	}
	_, err = io.Copy(sum, body)
	e.digest = sha1Digest((*[sha1.Size]byte)(sum.Sum(nil)))
	return e, of, true, err
}

// isComplete reports whether a record contains everything that its digest covers: it is neither
// truncated nor segmented (WARC 1.1, section 7). A revisit record counts as complete, although it
// omits the body.
func isComplete(fields warc.Fields) bool {
	cut := fields.Get("WARC-Truncated")
	omitted := fields.Type() == "revisit" && cut == "length"
	return (cut == "" || omitted) && fields.Get("WARC-Segment-Number") == ""
}

// isHTTP reports whether a Content-Type is that of an HTTP message.
func isHTTP(contentType string) bool {
	return strings.HasPrefix(strings.ToLower(contentType), "application/http")
}

// noBody is the digest of an empty body.
var noBody = sha1.Sum(nil)

// repeated returns the digest of an unchanged version for the index. That of an empty body is
// dropped: many writers use it for the 304 itself, and not for the referenced body.
func (d digest) repeated() digest {
	if d.is(&noBody) {
		return ""
	}
	return d
}

// kindOf returns the result of a visit.
func kindOf(status int, revisit bool) Kind {
	switch {
	case revisit || status == 304:
		return Unchanged
	case status >= 400 || status < 100:
		return Failed
	}
	return Changed
}

// maxMedia bounds a media type; real ones are half as long.
const maxMedia = 127

// mediaType returns a Content-Type in lower case and without parameters, or "" if it is invalid.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if len(media) > maxMedia || strings.ContainsFunc(media, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	}) {
		return ""
	}
	return media
}
