package warc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Record is a header and a block, which Read reads. It is only valid until the next call of its
// [Reader]. It is not safe for concurrent use.
type Record struct {
	// Version is the first line of the header, such as "WARC/1.1".
	Version string

	// Offset is the offset of the gzip member or zstd frame with the record, or of the record
	// itself if it is not compressed.
	Offset int64

	// Length is the size in the file from Offset on. It is known once the record is closed, and
	// stays 0 for a record that shares its member with others: it cannot be read alone.
	Length int64

	// Size is the size of the block.
	Size int64

	fields   Fields
	left     int64 // of the block
	r        *Reader
	first    bool   // in its member, or not in one
	checked  bool   // the block and its end were checked
	ended    bool   // Close has nothing left to do
	done     func() // called by Close; may be nil
	reported error  // returned to the caller by Read
}

// Fields returns the named fields. The slice is reused for the next record; its strings are not.
func (rec *Record) Fields() Fields { return rec.fields }

// Get returns the value of the field of that name, or "".
func (rec *Record) Get(name string) string { return rec.fields.Get(name) }

// Type returns WARC-Type in lower case.
func (rec *Record) Type() string { return rec.fields.Type() }

// Read reads from the block. If the block is shorter than its Content-Length, does not match its
// digest, or the checksum after it is wrong, the last call returns a [DamageError] instead of
// io.EOF: bytes are only known to be right at the end.
func (rec *Record) Read(p []byte) (int, error) {
	if rec.reported != nil {
		return 0, rec.reported
	}
	if rec.left == 0 {
		return 0, rec.verify()
	}
	n, err := rec.r.body.Read(p[:min(int64(len(p)), rec.left)])
	rec.left -= int64(n)
	rec.r.check.write(p[:n])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, rec.fail(err)
	}
	return n, nil
}

// verify checks, once, the block against its digest, and what follows it up to the end of the member:
// the checksum there also protects the header. It returns the error for the end of the block.
func (rec *Record) verify() error {
	if rec.checked {
		return io.EOF
	}
	rec.checked = true
	matches, inside := rec.r.check.matches(), rec.r.inside
	err := rec.end()
	if err != nil {
		err = rec.fail(err)
	}
	if !matches {
		// Without a checksum of a member, the digest also confirmed where the block ends.
		rec.r.lost = rec.r.lost || !inside && !rec.r.salvage
		rec.reported = rec.r.damage(errors.New("the block does not match its digest"))
		return rec.reported
	}
	if err != nil {
		return err
	}
	return io.EOF
}

// WriteTo writes the rest of the block directly from the decompressor's buffer. Most blocks are
// skipped or hashed this way, and a copy would cost measurable time.
func (rec *Record) WriteTo(w io.Writer) (total int64, err error) {
	for rec.reported == nil && rec.left > 0 {
		part, err := rec.peek()
		if err != nil {
			return total, rec.fail(err)
		}
		n, err := w.Write(part)
		rec.r.check.write(part[:n])
		_, _ = rec.r.body.Discard(n) // n bytes are buffered
		rec.left -= int64(n)
		total += int64(n)
		if err == nil && n < len(part) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return total, err
		}
	}
	if rec.reported != nil {
		return total, rec.reported
	}
	if err := rec.verify(); err != io.EOF {
		return total, err
	}
	return total, nil
}

// peek returns the next bytes of the block, which must not be at its end.
func (rec *Record) peek() ([]byte, error) {
	body := rec.r.body
	if _, err := body.Peek(1); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body.Peek(int(min(int64(body.Buffered()), rec.left)))
}

// Close skips the rest of the record; then Length is known. It returns damage that Read has not
// returned. [Reader.Next] calls it; calling it again does nothing.
func (rec *Record) Close() error {
	if rec.ended {
		return nil
	}
	rec.ended = true
	var err error
	if rec.reported == nil { // else the reader has to search
		_, err = rec.WriteTo(io.Discard)
	}
	if rec.done != nil {
		rec.reported = errClosed
		rec.done()
	}
	return err
}

// errClosed is returned by reads of a detached record after Close.
var errClosed = fmt.Errorf("warc: read record: %w", fs.ErrClosed)

// Detach returns a copy of the record that its Reader does not reuse. Close calls done, once. After
// that the record cannot be read, but its fields stay valid. Until then the Reader must not be
// used.
func (rec *Record) Detach(done func()) *Record {
	own := *rec
	own.fields, own.done = slices.Clone(rec.fields), done
	return &own
}

var errNotRecord = errors.New("the block is followed by something other than a record")

// end reads and validates the bytes after the block.
func (rec *Record) end() error {
	r := rec.r
	if !r.inside {
		return rec.endPlain()
	}
	switch err := skipBlank(r.body); err {
	case io.EOF: // and the checksum was right
		r.inside = false
		if rec.first {
			rec.Length = r.src.pos() - rec.Offset
		}
		return nil
	case nil:
		buf, _ := r.body.Peek(longest)
		if !hasVersion(buf) {
			return errNotRecord
		}
		return nil
	default:
		return err
	}
}

// endPlain requires two line breaks, or the start of a record: without compression, nothing else
// confirms Content-Length.
func (rec *Record) endPlain() error {
	r := rec.r
	if buf, _ := r.body.Peek(len(recordEnd)); string(buf) == string(recordEnd) {
		_, err := r.body.Discard(len(recordEnd))
		rec.Length = r.src.pos() - rec.Offset
		return err
	}
	if r.required {
		return io.ErrUnexpectedEOF // programs that write the IDs also write the line breaks
	}
	rec.Length = r.src.pos() - rec.Offset
	if err := skipBlank(r.body); err != nil && err != io.EOF {
		return err
	}
	if buf, _ := r.body.Peek(longest); len(buf) > 0 && !beginsRecord(buf) {
		return errNotRecord
	}
	return nil
}

// fail records and returns the error that ends the record. An error of the source is not damage.
func (rec *Record) fail(err error) error {
	r := rec.r
	r.lost, r.inside = true, false
	if r.src.under.err != nil {
		rec.reported = fmt.Errorf("warc: read %s: %w", r.name, r.src.under.err)
	} else {
		rec.reported = r.damage(err)
	}
	return rec.reported
}
