package archive

import (
	"errors"
	"fmt"
	"io"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Body returns the body of a version without its content coding. An unchanged version has the body
// of the version that it repeats. A body of more than MaxBody bytes, or one whose compression ratio
// is suspicious, is an error that wraps warc.ErrTooLarge: read it with [Archive.Content]. For a
// truncated version it returns the stored part.
func (a *Archive) Body(v Version) ([]byte, error) {
	rec, err := a.openAs(v.Content, v.hasBody)
	if err != nil {
		return nil, err
	}
	defer rec.release()
	data, err := readBody(rec.Record, &v)
	if err != nil {
		return nil, fmt.Errorf("archive: body of %.200s: %w", v.URL, err)
	}
	return data, nil
}

// readBody reads the body of a version from its record.
func readBody(rec *warc.Record, v *Version) ([]byte, error) {
	body, _, _, err := openBody(rec, v, MaxBody)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(body, MaxBody+1))
	if len(data) > MaxBody {
		return nil, fmt.Errorf("%w: more than %d bytes", warc.ErrTooLarge, MaxBody)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// openBody returns the body in a record, its size if that is known, or -1, and whether a content
// coding was removed. limit is as in [warc.HTTP.Decoded].
func openBody(rec *warc.Record, v *Version, limit int64) (
	body io.Reader, size int64, decoded bool, err error,
) {
	b := &verified{rec: rec, version: v}
	b.Reader, size = rec, rec.Size
	if isHTTP(rec.Get("Content-Type")) {
		message, err := rec.HTTP()
		if err != nil {
			return nil, 0, false, err
		}
		raw := message.Body
		size = message.Size
		b.Reader = message.Decoded(limit)
		if decoded = b.Reader != raw; decoded {
			size = -1
		}
	}
	return b, size, decoded, nil
}

// verified is a body that is verified at its end: only the end of its record shows whether the bytes
// are right. It is not safe for concurrent use.
type verified struct {
	io.Reader
	rec     *warc.Record
	version *Version
}

// Read reads from the body. A truncated one may end anywhere.
func (b *verified) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF || b.version.Truncated && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
		if damage := b.rec.Close(); damage != nil {
			err = damage
		}
	}
	return n, err
}
