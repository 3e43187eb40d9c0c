package archive

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Resource is a record that is not the response to an HTTP request. The slice is only read, and
// only until AppendRecord returns.
type Resource struct {
	// Type is the WARC 1.1 record type: "resource" for content obtained without HTTP, "response"
	// for a response of another protocol, such as DNS, "metadata" about another record, or
	// "conversion" for another form of its content.
	Type string

	// URL is the target URL: absolute, without spaces and control characters. For DNS it is like
	// "dns:example.org".
	URL string

	// Time is when it was received or made, in microseconds.
	Time time.Time

	// ContentType is the type of Block, such as "text/dns" or "application/warc-fields".
	ContentType string

	// Block is the content.
	Block []byte

	// Of is the location of the record that metadata and conversions belong to. The zero Location
	// means none.
	Of Location
}

// resourceTypes are the types that a Resource may have, and whether it is a version of its URL.
var resourceTypes = map[string]bool{"resource": true, "response": true, "metadata": false,
	"conversion": false}

// isVersion reports whether it is a version of its URL.
func (r *Resource) isVersion() bool { return resourceTypes[r.Type] }

// AppendRecord writes a record that is not the response to an HTTP request. It has the guarantees
// of [Archive.Append]. Resources and responses are versions of their URL, with status 200; metadata
// and conversions are found by [Archive.Records] alone.
func (a *Archive) AppendRecord(r Resource) (Location, error) {
	c := Capture{URL: r.URL, Time: r.Time, Body: r.Block, record: &r}
	if err := c.check(); err != nil {
		return Location{}, err
	}
	if _, known := resourceTypes[r.Type]; !known {
		return Location{}, fmt.Errorf("%w: Type %.50q is not valid for a Resource",
			ErrInvalid, r.Type)
	}
	if fault := fieldFault("Content-Type", r.ContentType); fault != "" || isHTTP(r.ContentType) {
		return Location{}, fmt.Errorf("%w: ContentType %.100q is HTTP, or %s", ErrInvalid,
			r.ContentType, fault)
	}
	if r.Of != (Location{}) {
		rec, err := a.open(r.Of)
		if err != nil {
			return Location{}, fmt.Errorf("archive: record %v: %w", r.Of, err)
		}
		c.original = rec.Get("WARC-Record-ID")
		err = rec.Close() // damage in the ID shows there
		rec.release()
		if err != nil {
			return Location{}, fmt.Errorf("archive: record %v: %w", r.Of, err)
		}
	}
	return a.append(c)
}

// resource encodes a record that is not the response to an HTTP request.
func (e *encoder) resource(c *Capture) error {
	r := c.record
	e.h = warc.Head{Type: r.Type, WarcinfoID: e.info, Date: r.Time, TargetURI: r.URL,
		Payload: &e.sum, ContentType: r.ContentType}
	if c.original != "" {
		e.h.Extra = []warc.Field{{Name: "WARC-Refers-To", Value: c.original}}
	}
	return e.record(r.Block)
}

// Records returns all records of the named files, or of all files if none is named, in order. Each
// file is read up to its last complete capture when it is opened. A record is valid until the next
// one, and must not be closed. An error that wraps warc.ErrDamaged comes with a nil record, and the
// iteration continues; any other error ends it.
func (a *Archive) Records(files ...string) iter.Seq2[*warc.Record, error] {
	return func(yield func(*warc.Record, error) bool) {
		a := a.now()
		names, err := files, error(nil)
		if len(files) == 0 {
			names, err = a.Files()
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range names {
			if more, err := a.recordsOf(name, yield); err != nil || !more {
				if err != nil {
					yield(nil, fmt.Errorf("archive: records: %w", err))
				}
				return
			}
		}
	}
}

// recordsOf returns whether the caller wants more.
func (a *Archive) recordsOf(name string, yield func(*warc.Record, error) bool) (bool, error) {
	f, err := a.OpenFile(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	file := f.(*part)
	r, err := a.reader(file.name)
	if err != nil {
		return false, err
	}
	defer r.close()
	if err := a.readTrusted(r, file.section, file.name, 0, file.section.Size()); err != nil {
		return false, err
	}
	for {
		rec, err := r.warc.Next()
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil && !errors.Is(err, warc.ErrDamaged):
			return false, err
		case !yield(rec, err):
			return false, nil
		}
	}
}
