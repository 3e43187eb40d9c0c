package archive

import (
	"errors"
	"fmt"
	"io"

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
	body, _, err := rec.Content(MaxBody)
	if err != nil {
		return nil, fmt.Errorf("archive: body of %.200s: %w", v.URL, err)
	}
	data, err := io.ReadAll(io.LimitReader(body, MaxBody+1))
	switch {
	case len(data) > MaxBody:
		return nil, fmt.Errorf("archive: body of %.200s: %w: more than %d bytes", v.URL,
			warc.ErrTooLarge, MaxBody)
	case v.Truncated && errors.Is(err, io.ErrUnexpectedEOF):
		return data, nil
	case err != nil:
		return nil, fmt.Errorf("archive: body of %.200s: %w", v.URL, err)
	}
	return data, nil
}
