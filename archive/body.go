package archive

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Body returns the body of a version without its content coding. An unchanged version has the body
// of the version that it repeats. A body of more than MaxBody bytes, or one whose compression ratio
// is suspicious, is an error that wraps warc.ErrTooLarge: read it with [Archive.Read] and
// [warc.Record.Content]. For a truncated version it returns the stored part.
func (a *Archive) Body(v Version) ([]byte, error) {
	rec, err := a.open(v.Content)
	if err != nil {
		return nil, err
	}
	defer rec.release()
	data, err := a.body(rec.Record, &v)
	if err != nil {
		return nil, fmt.Errorf("archive: body of %.200s: %w", v.URL, err)
	}
	return data, nil
}

// body reads the body of a version from its record. In a file without compression, no checksum
// protects the header, which says how to read the block; so the body is compared with its digest.
func (a *Archive) body(rec *warc.Record, v *Version) ([]byte, error) {
	sum := sha1.New()
	plain := strings.HasSuffix(v.Content.File, warc.None.Extension()) && isOurs(v.Content.File)
	var body io.Reader = io.TeeReader(rec, sum)
	if isHTTP(rec.Get("Content-Type")) {
		message, err := rec.HTTP()
		if err == nil {
			message.Body = io.TeeReader(message.Body, sum)
			body, err = message.Decoded(MaxBody)
		}
		if err != nil {
			return nil, err
		}
	}
	data, err := readBody(rec, body, v.Truncated)
	if err == nil && plain && v.digest.contradicts(sha1Digest((*[sha1.Size]byte)(sum.Sum(nil)))) {
		err = &warc.DamageError{File: v.Content.File, Offset: v.Content.Offset,
			Reason: "the body does not match its digest"}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// readBody reads the body of a record, and then the rest of the record: only its end shows whether
// the bytes are right. A truncated body may end anywhere.
func readBody(rec *warc.Record, body io.Reader, truncated bool) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, MaxBody+1))
	if len(data) > MaxBody {
		return nil, fmt.Errorf("%w: more than %d bytes", warc.ErrTooLarge, MaxBody)
	}
	if truncated && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err == nil {
		err = rec.Close()
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
