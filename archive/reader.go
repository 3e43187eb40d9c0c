package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/internal/zdict"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// reader is a decompressor and the file that it reads.
type reader struct {
	warc *warc.Reader
	file io.Closer
	pool *sync.Pool // of the decompressor; nil if it has a dictionary
}

// close may be called again.
func (r *reader) close() {
	if r.warc != nil && r.pool != nil {
		r.pool.Put(r.warc)
	} else if r.warc != nil {
		r.warc.Close()
	}
	if r.file != nil {
		_ = r.file.Close()
	}
	r.warc, r.file = nil, nil
}

// readAt makes the reader read a part of a file, which errors name.
func (r *reader) readAt(f io.ReaderAt, name string, offset, length int64) {
	r.warc.ResetAt(named{f, name}, offset, length)
}

// record opens the record at a location. On an error the reader is closed.
func (r *reader) record(f io.ReaderAt, loc Location) (*opened, error) {
	r.readAt(f, loc.File, loc.Offset, loc.Length)
	rec, err := r.warc.Next()
	if err == io.EOF {
		err = &warc.DamageError{File: loc.File, Offset: loc.Offset, Reason: "no record"}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return &opened{rec, r}, nil
}

// named is a file with its name in the archive.
type named struct {
	io.ReaderAt
	name string
}

// ReadAt marks the errors of the disk, which say nothing of the file.
func (n named) ReadAt(p []byte, at int64) (int, error) {
	read, err := n.ReaderAt.ReadAt(p, at)
	if err != nil && err != io.EOF {
		err = &unreadable{err}
	}
	return read, err
}

// unreadable is an error of a disk that cannot read a part of a file.
type unreadable struct{ error }

// Unwrap returns the cause.
func (e *unreadable) Unwrap() error { return e.error }

// Name returns the name.
func (n named) Name() string { return n.name }

// reader returns a reader without a file, with the dictionary of the named one.
func (a *Archive) reader(name string) (*reader, error) {
	dict, err := a.dict(name)
	if err != nil {
		return nil, err
	}
	return a.readerWith(dict), nil
}

// readerWith takes a decompressor from the pool, unless it needs a dictionary: such a decompressor
// is made for one file, and not reused.
func (a *Archive) readerWith(dict []byte) *reader {
	if dict != nil {
		return &reader{warc: warc.NewReader(nil, warc.ReaderOptions{Verify: true, Dict: dict})}
	}
	if r, ok := a.pool.Get().(*warc.Reader); ok {
		return &reader{warc: r, pool: &a.pool}
	}
	return &reader{warc: warc.NewReader(nil, warc.ReaderOptions{Verify: true}), pool: &a.pool}
}

// dict returns the dictionary at the start of a zstd file, if there is one. A damaged one is
// reported when the file is read from its start, or a frame needs it.
func (a *Archive) dict(name string) ([]byte, error) {
	if strings.EqualFold(filepath.Ext(name), ".gz") { // others may be zstd, whatever they are called
		return nil, nil
	}
	if dict, known := a.dicts.get(name); known {
		return dict, nil
	}
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := a.readerWith(nil)
	defer r.close()
	dict, err := r.warc.ReadDict(f)
	switch {
	case errors.Is(err, warc.ErrDamaged):
		return nil, nil
	case err != nil:
		return nil, err
	case f.size < int64(len(zdict.Magic)): // an import that may grow, and have one then
		return nil, nil
	}
	return a.dicts.put(name, dict), nil
}

// opened is a record and its reader. It is not safe for concurrent use.
type opened struct {
	*warc.Record
	reader *reader
}

// release closes the reader without verifying the rest of the record.
func (o *opened) release() { o.reader.close() }

// handOver returns the record for the caller. Closing it releases the reader.
func (o *opened) handOver() *warc.Record { return o.Detach(o.release) }

// Content opens the record with the body of a version:
//
//	rec, err := a.Content(version)
//	message, err := rec.HTTP()
//	body, err := io.ReadAll(message.Body)
//
// Close the record after reading: that closes its file. At the end of a damaged record, reading
// returns a [warc.DamageError]. So does Content if damage has put another record there.
func (a *Archive) Content(v Version) (*warc.Record, error) {
	o, err := a.openAs(v.Content, v.hasBody)
	if err != nil {
		return nil, err
	}
	return o.handOver(), nil
}

// Read opens the record at a location, such as [Version.Request]. What is said of
// [Archive.Content] applies, but any record of the file may be there.
func (a *Archive) Read(loc Location) (*warc.Record, error) {
	o, err := a.open(loc)
	if err != nil {
		return nil, err
	}
	return o.handOver(), nil
}

func (a *Archive) open(loc Location) (*opened, error) {
	if loc.Length <= 0 {
		return nil, ErrNotFound
	}
	r, err := a.reader(loc.File)
	if err != nil {
		return nil, err
	}
	f, err := a.openFile(loc.File)
	if err != nil {
		r.close()
		return nil, err
	}
	r.file = f
	rec, err := r.record(f, loc)
	if err != nil {
		return nil, err
	}
	if err := belongs(rec.Record, loc); err != nil {
		rec.release()
		return nil, err
	}
	return rec, nil
}

// notHere is the damage of a file in which another record is where one was indexed. Its sums are right:
// a disk may return another block than it was asked for, and a backup may have put another file here.
func notHere(loc Location) error {
	return &warc.DamageError{File: loc.File, Offset: loc.Offset, Reason: "another record is here"}
}

// belongs returns an error unless a record has the ID that the name of its file confirms, or if it is in
// the place of one that was erased. In files of other programs no ID tells.
func belongs(rec *warc.Record, loc Location) error {
	m := ours.FindStringSubmatch(loc.File)
	switch {
	case m != nil && !strings.HasSuffix(rec.Fields().URI("WARC-Warcinfo-ID"), m[2]):
		return notHere(loc)
	case isHole(rec):
		return fmt.Errorf("%w: %s, byte %d, was erased", ErrNotFound, loc.File, loc.Offset)
	}
	return nil
}

// isHole reports whether a record is in the place of one that was erased.
func isHole(rec *warc.Record) bool {
	return rec.Type() == "metadata" && rec.Get(erasedField) != "" && rec.Get("Content-Type") == ""
}

// openAs opens the record at a location, if it is the one that was indexed there.
func (a *Archive) openAs(loc Location, is func(*warc.Record) bool) (*opened, error) {
	rec, err := a.open(loc)
	if err == nil && !is(rec.Record) {
		rec.release()
		return nil, notHere(loc)
	}
	return rec, err
}

// isIn reports whether a record is that of a version.
func (v *Version) isIn(rec *warc.Record) bool {
	date, dated := rec.Fields().Date()
	return rec.Type() != "request" && dated && microseconds(date) == microseconds(v.Time) && v.isAbout(rec)
}

// isAbout reports whether a record is about the URL of a version.
func (v *Version) isAbout(rec *warc.Record) bool {
	key, _ := urlkey.Of(v.URL)
	of, _ := urlkey.Of(rec.Fields().URI("WARC-Target-URI"))
	return key == of
}

// hasBody reports whether a record has the body of a version.
func (v *Version) hasBody(rec *warc.Record) bool {
	if v.Content == v.Location && !v.isIn(rec) {
		return false
	}
	kind := rec.Type()
	return kind != "request" && kind != "revisit" &&
		!v.digest.contradicts(parseDigest(rec.Get("WARC-Payload-Digest")))
}

// confirm returns an error unless a record has the body of a version.
func (v *Version) confirm(rec *warc.Record) error {
	err := belongs(rec, v.Content)
	if err == nil && !v.hasBody(rec) {
		err = notHere(v.Content)
	}
	return err
}

// isAskedIn reports whether a record is the request of a version.
func (v *Version) isAskedIn(rec *warc.Record) bool { return rec.Type() == "request" && v.isAbout(rec) }

// ours matches the names that newName returns.
var ours = regexp.MustCompile(`-(\d{17})-\d{5,}-([0-9a-f]{12})\.warc(\.gz|\.zst)$`)

// isOurs reports whether, by its name, all records of a file have the ID of its warcinfo record.
func isOurs(name string) bool { return ours.MatchString(name) }

// maxRatio is how many times its size a member in a file of another program may expand to. It is
// more than gzip can reach. A page of one repeated byte that is compressed with zstd exceeds it; in
// our own files it may.
const maxRatio = 1100

// readTrusted makes the reader read a part of a file, and sets which records it accepts. In a file
// of ours, all records must have its ID.
func (a *Archive) readTrusted(r *reader, f io.ReaderAt, name string, from, length int64) error {
	id, err := identity(r, f, name, from+length)
	if err != nil {
		return err
	}
	r.readAt(f, name, from, length)
	if id == "" || isImport(name) {
		r.warc.SetMaxRatio(maxRatio)
	}
	if isOurs(name) {
		r.warc.Require(cmp.Or(id, noID))
	}
	return nil
}

// noID is the ID of a file of ours in which no record has the ID of its name: they are all of another
// file, which a disk or a backup has put in its place, or from a body.
const noID = "unknown"

// identity returns the ID of a file of ours, or "" if no record has it. It is believed if an intact
// record has it and the name of the file ends in the same digits: the first record may be damaged,
// and a body that looks like a record cannot know them.
func identity(r *reader, f io.ReaderAt, name string, size int64) (id string, err error) {
	m := ours.FindStringSubmatch(name)
	if m == nil {
		return "", nil
	}
	err = r.search(f, name, size, func(rec *warc.Record) bool {
		of := rec.Fields().URI("WARC-Warcinfo-ID")
		if rec.Type() == "warcinfo" {
			of = rec.Fields().URI("WARC-Record-ID")
		}
		if !strings.HasSuffix(of, m[2]) {
			return false
		}
		id = strings.Clone(of)
		return true
	})
	return id, err
}

// search calls visit with each intact record of a file, whether or not it can be trusted, until
// visit returns true.
func (r *reader) search(f io.ReaderAt, name string, size int64, visit func(*warc.Record) bool) error {
	r.readAt(f, name, 0, size)
	r.warc.SetSalvage(true)
	for rec, err := range r.warc.Records() {
		if err == nil {
			err = rec.Close()
		}
		switch {
		case err != nil && !errors.Is(err, warc.ErrDamaged):
			return err
		case err == nil && visit(rec):
			return nil
		}
	}
	return nil
}

// walk calls visit with each record in a part of a file that can be trusted, and damaged with each
// damaged part, which may be what visit returns. Any other error ends the walk.
func (a *Archive) walk(f io.ReaderAt, name string, from, to int64, visit func(*warc.Record) error,
	damaged func(*warc.DamageError) error,
) error {
	r, err := a.reader(name)
	if err != nil {
		return err
	}
	defer r.close()
	if err := a.readTrusted(r, f, name, from, to-from); err != nil {
		return err
	}
	for rec, err := range r.warc.Records() {
		if err == nil {
			err = visit(rec)
		}
		var damage *warc.DamageError // which errors.As makes of other damage, too: that of the index
		if errors.Is(err, warc.ErrDamaged) && errors.As(err, &damage) {
			err = damaged(damage)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
