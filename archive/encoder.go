package archive

import (
	"bytes"
	"crypto/sha1"
	"io"
	"strconv"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// maxBuffered is the size up to which a capture is compressed into memory, outside of the lock. All
// pages and most pictures fit. Larger captures are rare, and block others for less time than they
// took to fetch.
const maxBuffered = 4 << 20

var (
	lastChunk = []byte("0\r\n\r\n")
	chunkEnd  = []byte("\r\n0\r\n\r\n") // of a non-empty chunk, and the last chunk
)

// encoder turns captures into members. It is reused, since a compressor is too large to allocate
// for each record. It is not safe for concurrent use.
type encoder struct {
	out  io.Writer // of the members; nil means buf
	buf  []byte
	n    int64 // bytes of members since begin
	last int64 // offset of the last one

	warc  *warc.Encoder
	h     warc.Head       // here because a local one would escape to the heap
	sum   [sha1.Size]byte // of the body
	info  warc.ID         // of the file that the members are for
	chunk []byte          // the size line of the only chunk
}

// newEncoder requires valid options.
func newEncoder(o warc.EncoderOptions) *encoder {
	e := &encoder{}
	e.warc, _ = warc.NewEncoder(o)
	return e
}

// begin starts a run of records that goes to out, or to e.buf if out is nil.
func (e *encoder) begin(out io.Writer) {
	e.out, e.buf, e.n = out, e.buf[:0], 0
}

// Write receives the output of the compressor. Counting here gives the boundaries of the members.
func (e *encoder) Write(p []byte) (int, error) {
	e.n += int64(len(p))
	if e.out != nil {
		return e.out.Write(p)
	}
	e.buf = append(e.buf, p...)
	return len(p), nil
}

// capture encodes the records of c, the response last. It requires that e.sum is the digest of its
// body.
//
// The request comes first: a crash in between leaves a request without a response, which is
// harmless, and not a response that was never acknowledged. They refer to each other. Each has the
// ID of its file: after damage, only the ID distinguishes a record from a body that looks like one.
func (e *encoder) capture(c *Capture, of original, info warc.ID, out io.Writer) error {
	e.begin(out)
	e.info = info
	if c.about != "" {
		return e.metadata(c)
	}
	request, response := warc.ID{}, warc.NewID()
	var over warc.Head
	over.SetConnection(c.Protocol, c.TLS, c.CipherSuite)
	if len(c.Request) > 0 {
		request = warc.NewID()
		e.h = warc.Head{Type: "request", ID: request, WarcinfoID: info, ConcurrentTo: response,
			Date: c.Time, TargetURI: c.URL, Addr: c.Addr, Truncated: c.RequestTruncated,
			Protocols: over.Protocols, CipherSuite: over.CipherSuite,
			ContentType: "application/http;msgtype=request", Extra: c.extra()}
		if err := e.record(c.Request); err != nil {
			return err
		}
	}
	e.h = warc.Head{Type: "response", ID: response, WarcinfoID: info, ConcurrentTo: request,
		Date: c.Time, TargetURI: c.URL, Addr: c.Addr, Payload: &e.sum, Truncated: c.Truncated,
		Protocols: over.Protocols, CipherSuite: over.CipherSuite,
		ContentType: "application/http;msgtype=response", Extra: c.extra()}
	if isPosted(c.Request) {
		e.h.Extra = append(e.h.Extra[:len(e.h.Extra):len(e.h.Extra)],
			warc.Field{Name: methodField, Value: askedOf(c.Request, 0, "").method})
	}
	if of.profile != "" {
		return e.revisit(c, of)
	}
	return e.response(c)
}

// revisit encodes a revisit record: the head of the response and a reference to the body. The
// digest is that of the referenced body.
func (e *encoder) revisit(c *Capture, of original) error {
	e.h.Type, e.h.Profile = "revisit", of.profile
	e.h.RefersToURI, e.h.RefersToDate = of.url, of.time
	if of.profile == warc.ProfileIdentical && e.h.Truncated == "" {
		e.h.Truncated = "length" // WARC 1.1, section 6.7.2: the body is omitted
	}
	if of.profile == warc.ProfileNotModified {
		e.h.Payload = nil
		if of.digest != "" {
			e.h.Extra = append(e.h.Extra[:len(e.h.Extra):len(e.h.Extra)],
				warc.Field{Name: "WARC-Payload-Digest", Value: of.digest.String()})
		}
	}
	return e.record(c.Head)
}

// response encodes the response record.
//
// A chunked body is written as one chunk, because the head is evidence and must not change. The
// payload is the body without chunks, so that equal bodies have equal digests.
func (e *encoder) response(c *Capture) error {
	chunked := c.chunked()
	switch {
	case !chunked && c.Large != nil:
		return e.large(c, nil, nil)
	case !chunked:
		return e.record(c.Head, c.Body)
	case c.bodySize() == 0:
		return e.record(c.Head, lastChunk)
	}
	e.chunk = strconv.AppendInt(e.chunk[:0], c.bodySize(), 16)
	e.chunk = append(e.chunk, "\r\n"...)
	if c.Large != nil {
		return e.large(c, e.chunk, chunkEnd)
	}
	return e.record(c.Head, e.chunk, c.Body, chunkEnd)
}

// large encodes the response record of a capture whose body is not in memory.
func (e *encoder) large(c *Capture, before, after []byte) error {
	e.last = e.n
	_, _, err := e.warc.EncodeFrom(e, &e.h, &rewound{open: func() (io.Reader, error) {
		return io.MultiReader(bytes.NewReader(c.Head), bytes.NewReader(before),
			io.NewSectionReader(c.Large, 0, c.Large.Size()), bytes.NewReader(after)), nil
	}})
	return err
}

// rewound is a block that is opened again after each Seek. It is not safe for concurrent use.
type rewound struct {
	open func() (io.Reader, error)
	r    io.Reader
}

// Read reads from where the last Read or Seek stopped.
func (b *rewound) Read(p []byte) (int, error) {
	if b.r == nil {
		r, err := b.open()
		if err != nil {
			return 0, err
		}
		b.r = r
	}
	return b.r.Read(p)
}

// Seek rewinds to the beginning; encoders seek nowhere else.
func (b *rewound) Seek(int64, int) (int64, error) {
	b.r = nil
	return 0, nil
}

// record encodes one record with the header e.h. Its block is the concatenation of the parts.
func (e *encoder) record(parts ...[]byte) error {
	e.last = e.n
	_, _, err := e.warc.Encode(e, &e.h, parts...)
	return err
}
