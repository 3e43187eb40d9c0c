package archive

import (
	"fmt"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// AppendMetadata writes a metadata record with fields about the capture at a location, with its URL
// and time. It has the guarantees of [Archive.Append]. The record is not a version of the URL: it is
// found by [Archive.Records], and refers to the record that it is about. If an erasure has moved or
// removed that since, or is about to remove it, the error wraps [ErrNotFound]: the Location of a version
// found now is right.
func (a *Archive) AppendMetadata(of Location, fields ...warc.Field) (Location, error) {
	for _, f := range fields {
		if fault := fieldFault(f.Name, f.Value); fault != "" {
			return Location{}, fmt.Errorf("%w: the field %.100q %s", ErrInvalid, f.Name, fault)
		}
	}
	rec, err := a.open(of)
	if err != nil {
		return Location{}, fmt.Errorf("archive: record %v: %w", of, err)
	}
	defer rec.release()
	c := Capture{URL: rec.Fields().URI("WARC-Target-URI"), about: rec.Get("WARC-Record-ID"), of: of,
		Body: warc.Fields(fields).Block()}
	c.Time, _ = rec.Fields().Date()
	if err := rec.Close(); err != nil { // damage in the fields shows there
		return Location{}, fmt.Errorf("archive: record %v: %w", of, err)
	}
	if c.about == "" {
		return Location{}, fmt.Errorf("%w: record %v has no ID", ErrInvalid, of)
	}
	return a.Append(c)
}

// remains returns an error if an erasure has removed the record that metadata are about, or is about to: it
// would not erase what is appended now.
func (a *Archive) remains(c *Capture) error {
	rec, err := a.open(c.of)
	if err != nil {
		return err
	}
	defer rec.release()
	key, _ := urlkey.Of(c.URL)
	m := a.erasing.Load()
	if m != nil && m.matches(key, microseconds(c.Time), parseDigest(rec.Get(payloadField))) {
		return fmt.Errorf("%w: record %v is being erased", ErrNotFound, c.of)
	}
	return nil
}

// metadata encodes the record of AppendMetadata.
func (e *encoder) metadata(c *Capture) error {
	e.h = warc.Head{Type: "metadata", WarcinfoID: e.info, Date: c.Time, TargetURI: c.URL,
		Payload: &e.sum, ContentType: "application/warc-fields",
		Extra: []warc.Field{{Name: "WARC-Refers-To", Value: c.about}}}
	return e.record(c.Body)
}
