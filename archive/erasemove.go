package archive

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// moving ends the name of the file with moved records until the index has its entries. Nobody takes it for
// a WARC file then, so no version is found twice.
const moving = ".moving"

// maxPromoted bounds the known new originals. Beyond it, bodies are stored more than once, as are those of answers to
// other requests than plain GETs.
const maxPromoted = 1 << 16

// mover writes the records that stay and have to change. It is not safe for concurrent use.
type mover struct {
	*erasure
	out      *output
	promoted map[address]newOriginal // by the address of a body that has moved: digests of other programs prove nothing
}

// newOriginal is a record that has become the original of its body.
type newOriginal struct {
	url  string
	time time.Time
	sum  *[sha1.Size]byte // of the body, as it was read
}

// references are the fields of a revisit that name its original.
var references = []string{"WARC-Refers-To", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date"}

// move writes a record of a file anew. A version becomes the original of its body, or refers to the
// record that did; if the body cannot be read, it refers to none.
func (m *mover) move(name string, p *piece) error {
	loc := Location{name, p.entry.offset, p.entry.length}
	rec, err := m.archive.open(loc)
	if err != nil {
		return err
	}
	defer rec.release()
	if !p.version {
		h := m.head(rec.Fields(), p.kind)
		return m.write(&h, &rewound{open: func() (io.Reader, error) {
			rec, err := m.archive.Read(loc)
			if err != nil {
				return nil, err
			}
			return contentOf(rec, false)
		}})
	}
	var head []byte
	if isHTTP(rec.Get("Content-Type")) {
		message, err := rec.HTTP()
		if err != nil {
			return err
		}
		head = message.Head
	}
	if !p.found || p.stored.content.length == 0 {
		return m.refer(p, rec.Fields(), head, nil)
	}
	if of, known := m.promoted[p.stored.content]; known {
		return m.refer(p, rec.Fields(), head, &of)
	}
	err = m.promote(p, rec.Fields(), head)
	if errors.Is(err, warc.ErrDamaged) || errors.Is(err, ErrNotFound) {
		return m.refer(p, rec.Fields(), head, nil)
	}
	return err
}

// refer writes a revisit of a new original, or of none.
func (m *mover) refer(p *piece, fields warc.Fields, head []byte, of *newOriginal) error {
	h := m.head(fields, p.kind, references...)
	if of != nil {
		h = m.head(fields, "revisit", append(references, payloadField)...) // also a 304 in a response record
		h.RefersToURI, h.RefersToDate, h.Payload = of.url, of.time, of.sum
	}
	if h.Type == "revisit" && warc.Fields(h.Extra).Get("WARC-Profile") == "" {
		h.Profile = warc.ProfileIdentical
		if p.entry.status == http.StatusNotModified {
			h.Profile = warc.ProfileNotModified
		}
	}
	return m.write(&h, bytes.NewReader(head))
}

// payloadField has the digest of a body.
const payloadField = "WARC-Payload-Digest"

// promote writes a revisit as the original of its body. The digest is that of the bytes: captures will be
// compared with it, and the one that the original claimed may be wrong.
func (m *mover) promote(p *piece, fields warc.Fields, own []byte) error {
	v := m.archive.describe(p.at, &p.stored, never)
	head, media, err := m.archive.promotedHead(v, own)
	if err != nil {
		return err
	}
	sum := sha1.New()
	body := &rewound{open: func() (io.Reader, error) {
		rec, err := m.archive.Content(v)
		if err != nil {
			return nil, err
		}
		return contentOf(rec, true)
	}}
	n, err := io.Copy(sum, body)
	if err != nil {
		return err
	}
	h := m.head(fields, "response", append(references, payloadField, "WARC-Profile", "WARC-Truncated", "Content-Type")...)
	if h.ContentType = "application/http;msgtype=response"; len(head) == 0 {
		h.Type, h.ContentType = "resource", media
	}
	if h.Payload = (*[sha1.Size]byte)(sum.Sum(nil)); p.stored.truncated {
		h.Truncated = "unspecified"
	}
	if len(head) > 0 && !bytes.Equal(head, completed(own)) {
		h.Extra = slices.DeleteFunc(h.Extra, func(f warc.Field) bool { return f.Name == rebuiltField[0].Name })
		h.Extra = append(h.Extra, rebuiltField...)
	}
	var tail []byte
	if (&warc.HTTP{Head: head}).Chunked() {
		if tail = lastChunk; n > 0 {
			head = append(strconv.AppendInt(bytes.Clone(head), n, 16), "\r\n"...)
			tail = chunkEnd
		}
	}
	err = m.write(&h, &rewound{open: func() (io.Reader, error) {
		r, err := body.open()
		return io.MultiReader(bytes.NewReader(head), r, bytes.NewReader(tail)), err
	}})
	if err != nil {
		return err
	}
	// A reference names only the URL, so that it finds no answer to another request than a plain GET. In files of other
	// programs it may be one that no reference can name.
	url := fields.URI("WARC-Target-URI")
	if isPlain(p.at) && len(m.promoted) < maxPromoted && urlFault(url) == "" {
		m.promoted[p.stored.content] = newOriginal{url: strings.Clone(url),
			time: fromMicroseconds(p.stored.time), sum: h.Payload}
	}
	return nil
}

// promotedHead returns the head of a version that becomes an original: its own, unless that is a 304, or lacks what
// a reader of the body needs. Then it has the fields of the record with the body, too. If neither is an HTTP
// message, promotedHead returns a type alone.
func (a *Archive) promotedHead(v Version, own []byte) (head []byte, media string, err error) {
	kept, media, err := a.head(v.Content, v.hasBody)
	if err != nil || len(own) == 0 && len(kept.Head) == 0 {
		return nil, media, err
	}
	fresh := warc.HTTP{Head: own}
	status := fresh.Status()
	if status == http.StatusNotModified {
		status = 0
	}
	resp := kept.response(media)
	if status != 0 && fresh.Get("Content-Encoding") == kept.Get("Content-Encoding") &&
		(fresh.Get("Content-Type") != "" || resp.Header.Get("Content-Type") == "") {
		return completed(own), "", nil
	}
	update(resp.Header, fresh.Header())
	resp.Header.Del("Transfer-Encoding")
	line, _, _ := bytes.Cut(own, []byte("\n"))
	if status == 0 {
		line = []byte("HTTP/1.1 " + resp.Status)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\r\n", bytes.TrimRight(line, "\r"))
	_ = resp.Header.Write(&b) // a buffer returns no error
	b.WriteString("\r\n")
	if isTooLong(b.Bytes()) && len(kept.Head) > 0 {
		return completed(kept.Head), "", nil // without it, nobody could read the body
	}
	return b.Bytes(), "", nil
}

// completed returns a head with the blank line at its end, which that of a revisit may lack: a body follows.
func completed(head []byte) []byte {
	if headLen(head) == len(head) {
		return head
	}
	head = bytes.Clone(head)
	if !bytes.HasSuffix(head, []byte("\n")) {
		head = append(head, "\r\n"...)
	}
	return append(head, "\r\n"...)
}

// mark is the field of all records that an erasure makes: the end of the ID, which is in the name of the
// file with the tombstone. A longer one might not fit in the place of a short record.
func (e *erasure) mark() warc.Field {
	return warc.Field{Name: erasedField, Value: hex.EncodeToString(e.ID[len(e.ID)-markSize:])}
}

// head returns the header of a record with the fields of another one, except for some, and for those of other
// programs that no record may have.
func (m *mover) head(fields warc.Fields, kind string, without ...string) warc.Head {
	date, dated := fields.Date()
	if !dated { // of a request: a version has one
		date = m.Time
	}
	h := warc.Head{Type: kind, ID: parseID(fields.URI("WARC-Record-ID")), WarcinfoID: m.ID, Date: date}
	without = append(without, "WARC-Type", "WARC-Record-ID", "WARC-Warcinfo-ID", "WARC-Date",
		"WARC-Block-Digest", "Content-Length", erasedField)
	h.Extra = append(h.Extra, m.mark())
	for _, f := range fields {
		again := warc.Fields(h.Extra).Get(f.Name) != "" && !f.Repeatable()
		if f.Valid() && !again && !slices.ContainsFunc(without, func(name string) bool {
			return strings.EqualFold(name, f.Name)
		}) {
			h.Extra = append(h.Extra, f)
		}
	}
	return h
}

// parseID returns the zero ID for one that is not a UUID; the record then gets a new one.
func parseID(uri string) (id warc.ID) {
	digits := strings.ReplaceAll(strings.TrimPrefix(uri, "urn:uuid:"), "-", "")
	if b, err := hex.DecodeString(digits); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// write writes one record.
func (m *mover) write(h *warc.Head, block io.ReadSeeker) error {
	m.out.encoder.begin(m.out)
	_, _, err := m.out.encoder.warc.EncodeFrom(m.out.encoder, h, block)
	return err
}

// complete adds the tombstone, and makes the file durable.
func (m *mover) complete() error {
	h := warc.Head{Type: "metadata", WarcinfoID: m.ID, Date: m.Time, ContentType: "application/warc-fields",
		Extra: []warc.Field{m.mark()}}
	fields := []warc.Field{{Name: "erased", Value: m.Time.Format(time.RFC3339)},
		{Name: "reason", Value: m.reason}, {Name: "versions", Value: strconv.Itoa(m.report.Erased)},
		{Name: "records", Value: strconv.FormatInt(m.report.Records, 10)},
		{Name: "bytes", Value: strconv.FormatInt(m.bytes, 10)}}
	err := m.write(&h, bytes.NewReader(warc.Fields(append(fields, m.kept...)).Block()))
	if err == nil {
		err = m.out.file.Sync()
	}
	return errors.Join(err, m.out.file.Close())
}

// contentOf returns the block of a record, or the body of the message in it. At its end the record is closed, and
// verified.
func contentOf(rec *warc.Record, body bool) (io.Reader, error) {
	content := &verified{Reader: rec, rec: rec, version: &Version{}}
	if body && isHTTP(rec.Get("Content-Type")) {
		message, err := rec.HTTP()
		if err != nil {
			return nil, errors.Join(err, rec.Close())
		}
		content.Reader = message.Body
	}
	return content, nil
}
