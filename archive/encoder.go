package archive

import (
	"crypto/sha1"
	"hash"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
)

// maxBuffered is the size up to which a capture is compressed into memory, outside of the lock.
// It covers all pages and most pictures: what is larger is rare, and keeps others waiting for less
// time than it took to fetch.
const maxBuffered = 4 << 20

var (
	recordEnd = []byte("\r\n\r\n")
	lastChunk = []byte("0\r\n\r\n")
	chunkEnd  = []byte("\r\n0\r\n\r\n") // of a chunk with bytes in it, and the last chunk
)

// encoder turns captures into gzip members. It is kept and used again, since a compressor is too
// large to be made for each record. It is not safe for concurrent use.
type encoder struct {
	out     io.Writer // where the members go; nil means buf
	buf     []byte
	n       int64 // bytes of members since begin
	raw     int64 // bytes that went into them
	records int64 // the number of members
	last    int64 // where the last one begins

	gz      *gzip.Writer
	sha     hash.Hash
	h       header // here and not on the stack, where the hash would make it escape
	scratch []byte // the encoded header
	chunk   []byte // the size line of the only chunk
}

// newEncoder requires a level that gzip knows. The tables of the compressor are made when they are
// first needed, so that a spare encoder costs next to nothing.
func newEncoder(level int) *encoder {
	e := &encoder{sha: sha1.New()}
	e.gz, _ = gzip.NewWriterLevel(e, level)
	return e
}

// begin starts a run of records that goes to out, or to e.buf if out is nil.
func (e *encoder) begin(out io.Writer) {
	e.out, e.buf, e.n, e.raw, e.records = out, e.buf[:0], 0, 0, 0
}

// Write takes what the compressor has made. Counting here gives the boundaries of the members,
// wherever they go.
func (e *encoder) Write(p []byte) (int, error) {
	e.n += int64(len(p))
	if e.out != nil {
		return e.out.Write(p)
	}
	e.buf = append(e.buf, p...)
	return len(p), nil
}

// capture encodes the records of c, the response last.
//
// The request comes first: what a crash in between leaves is then a request without a response,
// which says nothing about the page, and not a response that was never acknowledged. Each names the
// other, so that whoever has found one need not guess where the other is.
func (e *encoder) capture(c *Capture, out io.Writer) error {
	e.begin(out)
	request, response := recordID{}, newID()
	if len(c.Request) > 0 {
		request = newID()
		e.h = header{kind: "request", id: request, concurrent: response, date: c.Time,
			target: c.URL, addr: c.Addr, contentType: "application/http;msgtype=request"}
		if err := e.record(c.Request); err != nil {
			return err
		}
	}
	e.h = header{kind: "response", id: response, concurrent: request, date: c.Time,
		target: c.URL, addr: c.Addr, truncated: c.Truncated,
		contentType: "application/http;msgtype=response"}
	return e.response(c)
}

// response encodes the response record.
//
// A chunked body is given one chunk, rather than the head another Transfer-Encoding: what the
// server said is evidence. The payload is the body alone: it stays the same however the server cuts
// it into chunks, so that equal bodies have equal digests.
func (e *encoder) response(c *Capture) error {
	e.h.hasPayload = true
	e.sum(&e.h.payload, c.Body)
	switch {
	case !c.chunked():
		return e.record(c.Head, c.Body)
	case len(c.Body) == 0:
		return e.record(c.Head, lastChunk)
	}
	e.chunk = strconv.AppendInt(e.chunk[:0], int64(len(c.Body)), 16)
	e.chunk = append(e.chunk, "\r\n"...)
	return e.record(c.Head, e.chunk, c.Body, chunkEnd)
}

// record encodes one record with e.h before the block, which is the parts one after the other. The
// parts are read twice, as their digest stands before them.
func (e *encoder) record(parts ...[]byte) error {
	e.last = e.n
	e.records++
	e.h.length = e.sum(&e.h.block, parts...)
	e.scratch = appendHeader(e.scratch[:0], &e.h)
	e.gz.Reset(e)                  // a member of its own, where a reader can start
	e.gz.ModTime = time.Unix(0, 0) // "no time": the zero Time comes out as one in 2042
	if err := e.write(e.scratch); err != nil {
		return err
	}
	for _, part := range parts {
		if err := e.write(part); err != nil {
			return err
		}
	}
	if err := e.write(recordEnd); err != nil {
		return err
	}
	return e.gz.Close()
}

func (e *encoder) write(p []byte) error {
	e.raw += int64(len(p))
	_, err := e.gz.Write(p)
	return err
}

// sum sets sum to the SHA-1 of the parts and returns their length.
func (e *encoder) sum(sum *[sha1.Size]byte, parts ...[]byte) (length int64) {
	e.sha.Reset()
	for _, part := range parts {
		_, _ = e.sha.Write(part) // documented never to fail
		length += int64(len(part))
	}
	e.sha.Sum(sum[:0])
	return length
}
