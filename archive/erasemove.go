package archive

import (
	"bytes"
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

// maxPromoted bounds the known new originals. Beyond it, bodies are stored more than once.
const maxPromoted = 1 << 16

// mover writes the records that stay and have to change. It is not safe for concurrent use.
type mover struct {
	*erasure
	out      *output
	promoted map[promotion]original
}

// promotion is the body of a new original, and the key of that if it is not the answer to a plain GET:
// such an answer is found only by others to the same request, since a reference names only the URL.
type promotion struct {
	digest digest
	asked  string
}

func promotionOf(key string, d digest) promotion {
	if isPlain(key) {
		key = ""
	}
	return promotion{d, key}
}

func newMover(e *erasure) (*mover, error) {
	m := &mover{erasure: e, promoted: map[promotion]original{}, out: e.archive.files.another()}
	m.out.id.Store(&e.ID)
	return m, m.out.createAs(e.File, e.File+moving, time.Now())
}

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
		return m.write(&h, &reopened{open: func() (*warc.Record, error) { return m.archive.Read(loc) }})
	}
	var head []byte
	if isHTTP(rec.Get("Content-Type")) {
		message, err := rec.HTTP()
		if err != nil {
			return err
		}
		head = message.Head
	}
	of, known := m.promoted[promotionOf(p.at, p.stored.digest)]
	if !known {
		of, known = m.promoted[promotion{p.stored.digest, ""}]
	}
	if p.found && !known && p.stored.content.length > 0 {
		err := m.promote(p.at, rec.Fields(), head, &p.stored)
		if !errors.Is(err, warc.ErrDamaged) && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	h := m.head(rec.Fields(), p.kind, "WARC-Refers-To", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date")
	if known {
		h.RefersToURI, h.RefersToDate = of.url, of.time
		if h.Type != "revisit" { // a 304
			h.Type, h.Profile = "revisit", warc.ProfileNotModified
		}
	}
	return m.write(&h, bytes.NewReader(head))
}

// promote writes a revisit as the original of its body.
func (m *mover) promote(key string, fields warc.Fields, head []byte, stored *entry) error {
	h := m.head(fields, "response", "WARC-Refers-To", "WARC-Refers-To-Target-URI",
		"WARC-Refers-To-Date", "WARC-Profile", "WARC-Truncated")
	v := m.archive.describe(key, stored, never)
	if stored.status == http.StatusNotModified {
		var err error
		if head, err = m.archive.freshened(v); err != nil {
			return err
		}
		h.Extra = slices.DeleteFunc(h.Extra, func(f warc.Field) bool { return f.Name == "Spinneret-Heads" })
		h.Extra = append(h.Extra, rebuiltField...)
	}
	if stored.truncated {
		h.Truncated = "unspecified"
	}
	if d := stored.digest; d != "" {
		h.Extra = slices.DeleteFunc(h.Extra, func(f warc.Field) bool {
			return strings.EqualFold(f.Name, "WARC-Payload-Digest")
		})
		h.Extra = append(h.Extra, warc.Field{Name: "WARC-Payload-Digest", Value: d.String()})
	}
	block := &reopened{open: func() (*warc.Record, error) { return m.archive.Content(v) }, head: head, body: true}
	if (&warc.HTTP{Head: head}).Chunked() {
		n, err := io.Copy(io.Discard, block)
		if err != nil {
			return err
		}
		if n -= int64(len(head)); n > 0 {
			block.head = append(strconv.AppendInt(bytes.Clone(head), n, 16), "\r\n"...)
			block.tail = chunkEnd
		} else {
			block.tail = lastChunk
		}
		_, _ = block.Seek(0, io.SeekStart)
	}
	if err := m.write(&h, block); err != nil {
		return err
	}
	if stored.digest != "" && len(m.promoted) < maxPromoted {
		m.promoted[promotionOf(key, stored.digest)] = original{url: fields.URI("WARC-Target-URI"),
			time: fromMicroseconds(stored.time)}
	}
	return nil
}

// freshened returns the head of a 200 that a 304 has confirmed, with the fields of both.
func (a *Archive) freshened(v Version) ([]byte, error) {
	resp, err := a.Response(v)
	if err != nil {
		return nil, err
	}
	kept, _, err := a.head(v.Content, v.hasBody)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	for name, values := range kept.Header() { // the body is as it was stored
		if isOfBody(name) && name != "Transfer-Encoding" {
			resp.Header[name] = values
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\n", resp.Status)
	_ = resp.Header.Write(&b) // a buffer returns no error
	b.WriteString("\r\n")
	return b.Bytes(), nil
}

// mark is the field of all records that an erasure makes: the end of the ID, which is in the name of the
// file with the tombstone. A longer one might not fit in the place of a short record.
func (e *erasure) mark() warc.Field {
	return warc.Field{Name: erasedField, Value: hex.EncodeToString(e.ID[len(e.ID)-markSize:])}
}

// head returns the header of a record with the fields of another one, except for some.
func (m *mover) head(fields warc.Fields, kind string, without ...string) warc.Head {
	date, _ := fields.Date()
	h := warc.Head{Type: kind, ID: parseID(fields.URI("WARC-Record-ID")), WarcinfoID: m.ID, Date: date}
	without = append(without, "WARC-Type", "WARC-Record-ID", "WARC-Warcinfo-ID", "WARC-Date",
		"WARC-Block-Digest", "Content-Length", erasedField)
	h.Extra = append(h.Extra, m.mark())
	for _, f := range fields {
		again := warc.Fields(h.Extra).Get(f.Name) != "" && f.Name != "WARC-Protocol"
		if !again && !slices.ContainsFunc(without, func(name string) bool {
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

// reopened is the block of a record, or a head and the body of the message in it, which is read again
// after each Seek. It is not safe for concurrent use.
type reopened struct {
	open       func() (*warc.Record, error)
	body       bool
	head, tail []byte
	r          io.Reader
}

// Read reads from where the last Read or Seek stopped. At the end the record is verified.
func (b *reopened) Read(p []byte) (int, error) {
	if b.r == nil {
		rec, err := b.open()
		if err != nil {
			return 0, err
		}
		content := &contentOf{rec, rec}
		if b.body && isHTTP(rec.Get("Content-Type")) {
			message, err := rec.HTTP()
			if err != nil {
				return 0, errors.Join(err, rec.Close())
			}
			content.Reader = message.Body
		}
		b.r = io.MultiReader(bytes.NewReader(b.head), content, bytes.NewReader(b.tail))
	}
	return b.r.Read(p)
}

// Seek rewinds to the beginning; encoders seek nowhere else.
func (b *reopened) Seek(int64, int) (int64, error) {
	b.r = nil
	return 0, nil
}

// contentOf closes a record at the end of its content.
type contentOf struct {
	io.Reader
	rec *warc.Record
}

// Read reads the content.
func (c *contentOf) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil {
		if failed := c.rec.Close(); failed != nil && err == io.EOF {
			err = failed
		}
	}
	return n, err
}
