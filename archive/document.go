package archive

import (
	"bytes"
	"fmt"
	"io"
	"iter"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Document is a version of a [Snapshot] with its content, still compressed. It is not safe for
// concurrent use.
type Document struct {
	Version

	// Raw is the gzip member or zstd frame with the record at Content. It is nil if that is larger
	// than MaxRaw. It is only valid until the next document. A frame may need the dictionary of its
	// file; Record has it.
	Raw []byte

	archive *Archive
	dict    []byte
}

// Record opens the record with the content. Close it after reading.
func (d *Document) Record() (*warc.Record, error) {
	if d.Raw == nil {
		return d.archive.Content(d.Version)
	}
	part := shifted{bytes.NewReader(d.Raw), d.Content.Offset}
	o, err := d.archive.readerWith(d.dict).record(part, d.Content)
	if err != nil {
		return nil, err
	}
	if err := d.confirm(o.Record); err != nil {
		o.release()
		return nil, err
	}
	return o.handOver(), nil
}

// shifted is a part of a file that is read by offsets in the whole file.
type shifted struct {
	part  io.ReaderAt
	start int64
}

// ReadAt reads from the part.
func (s shifted) ReadAt(p []byte, off int64) (int, error) { return s.part.ReadAt(p, off-s.start) }

// Documents returns the versions with their contents, in the order of the content addresses: each
// file is read sequentially. Content that several versions share is read once.
//
// An error with a document whose Raw is nil means that its content cannot be read, because the file
// is missing or too short; the iteration continues. An error without a URL ends it.
func (s *Snapshot) Documents() iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		r := &sequential{archive: s.archive}
		defer r.close()
		doc := &Document{archive: s.archive}
		for v, err := range s.Versions() {
			if err != nil {
				yield(&Document{}, err)
				return
			}
			same := err == nil && doc.Content == v.Content && doc.Raw != nil
			doc.Version = v
			if !same {
				doc.Raw, doc.dict, err = r.read(v.Content)
			}
			if !yield(doc, err) {
				return
			}
		}
	}
}

// Sizes of one read. The largest is for sequential reading; the smallest, for documents far apart,
// takes about as long to read as a seek.
const (
	readAhead = 2 << 20
	leastRead = 64 << 10
)

// sequential reads parts of files in the order of their addresses. It is not safe for concurrent
// use.
type sequential struct {
	archive *Archive
	name    string
	file    *source
	dict    []byte
	failed  error // of opening the file

	window []byte // a part of the file
	start  int64  // offset of window
	used   int64  // bytes of the window that callers used
	ahead  int    // size of the next read
}

// close may be called again, and so may read after it.
func (s *sequential) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// read returns a part, valid until the next call. It is nil if it is too large.
func (s *sequential) read(loc Location) (raw, dict []byte, err error) {
	if loc.File != s.name || s.file == nil && s.failed == nil {
		s.open(loc.File)
	}
	if s.failed != nil || loc.Length > MaxRaw {
		return nil, s.dict, s.failed
	}
	if loc.Offset < s.start || loc.Offset+loc.Length > s.start+int64(len(s.window)) {
		if err := s.fill(loc); err != nil {
			return nil, s.dict, err
		}
	}
	s.used += loc.Length
	from := loc.Offset - s.start
	return s.window[from : from+loc.Length : from+loc.Length], s.dict, nil
}

// open opens another file. A failure is stored and returned for each part of the file, so that a
// missing file is not opened again for each of its documents.
func (s *sequential) open(name string) {
	s.close()
	s.name, s.window, s.start = name, s.window[:0], 0
	if s.dict, s.failed = s.archive.dict(name); s.failed == nil {
		s.file, s.failed = s.archive.openFile(name)
	}
}

// fill moves the window to the part. Bytes already in the window are reused.
func (s *sequential) fill(loc Location) error {
	// Parts come in the order of their addresses, but may overlap the window.
	have := 0
	if from := loc.Offset - s.start; from >= 0 && from < int64(len(s.window)) {
		have = copy(s.window, s.window[from:])
	}
	// A snapshot of a site should not read a whole large archive: if most bytes read were not used,
	// the next read is smaller.
	if s.used*4 < int64(len(s.window)) {
		s.ahead = max(s.ahead/2, leastRead)
	} else {
		s.ahead = min(max(2*s.ahead, leastRead), readAhead)
	}
	s.used = 0
	size := max(int(loc.Length), s.ahead)
	if cap(s.window) < size {
		s.window = append(make([]byte, 0, size), s.window[:have]...)
	}
	s.window, s.start = s.window[:size], loc.Offset
	n, err := s.file.ReadAt(s.window[have:], loc.Offset+int64(have))
	s.window = s.window[:have+n]
	if int64(len(s.window)) >= loc.Length {
		if s.ahead == readAhead { // nearly all of the file is used
			s.file.ahead(loc.Offset+int64(len(s.window)), readAhead)
		}
		return nil
	}
	if err == io.EOF {
		return &warc.DamageError{File: loc.File, Offset: loc.Offset,
			Reason: "the file is too short"}
	}
	return fmt.Errorf("archive: read: %w", err)
}
