package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Version is a page as it was found at one time. It is valid until it was found the next time.
type Version struct {
	// URL is in the form in which the index keeps it: without fragment and default port.
	URL string

	// Time is when it was found, to the microsecond, and Until when the next version of the URL
	// was. Until is zero for the last one.
	Time, Until time.Time

	// Kind is what the visit found.
	Kind Kind

	// Status is the status code, and Media the type in lower case without parameters.
	Status int
	Media  string

	// Digest is that of the body. It is "" if it is not known.
	Digest Digest

	// Truncated tells that the body is not whole.
	Truncated bool

	// Location is where the record is, and Content where the record with the body is: the same,
	// unless the version is unchanged. Then it is that of the version that holds the content, or
	// zero if the archive does not have it.
	Location, Content Location
}

// At returns the version of a URL that was valid at a time, or [ErrNotFound] if it had not been
// found by then. The zero Time means the last version.
func (a *Archive) At(url string, t time.Time) (Version, error) {
	key, _ := urlKey(url)
	v, found, err := a.version(key, instant(t))
	if err != nil {
		return Version{}, err
	}
	if !found {
		return Version{}, ErrNotFound
	}
	return a.elsewhere(v)
}

// instant returns a time as it stands in keys. The zero Time is later than all.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return never - 1
	}
	return min(microseconds(t), never-1)
}

// version returns the version of a key that is the last one not later than t.
func (a *Archive) version(key string, t int64) (v Version, found bool, err error) {
	r, found, err := a.lookUp(key, t)
	if err != nil || !found {
		return v, false, err
	}
	return a.describeResolved(key, &r), true, nil
}

// resolved is an entry, and the one that holds its content.
type resolved struct {
	entry, content entry
	has            bool // content
	until          int64
}

// lookUp returns the last entry of a key that is not later than t. The content of an unchanged one
// is that of the changed one before it. Where a digest is known it has to be the same: captures may
// have come in out of order.
func (a *Archive) lookUp(key string, t int64) (r resolved, found bool, err error) {
	r.until, err = a.index.back(key, t, func(seen *entry) bool {
		if !found {
			found = true
			r.entry, r.content, r.has = *seen, *seen, seen.kind != Unchanged
			return !r.has
		}
		r.has = repeats(&r.entry, seen)
		r.content = *seen
		return !r.has
	})
	return r, found, err
}

// describeResolved describes a version with its content.
func (a *Archive) describeResolved(key string, r *resolved) Version {
	v := a.describe(key, &r.entry, r.until)
	if r.has {
		v.Content = a.location(&r.content)
		v.from(&r.content)
	}
	return v
}

// contradicts tells whether two digests are those of different bodies. Those of two algorithms tell
// nothing.
func (d Digest) contradicts(other Digest) bool {
	return d != "" && other != "" && d[0] == other[0] && d != other
}

// repeats tells whether an unchanged version has the content of one before it.
func repeats(e, before *entry) bool {
	return before.kind == Changed && (e.digest == "" || e.digest == before.digest)
}

// from takes over what a version without a body cannot say of itself.
func (v *Version) from(content *entry) {
	if v.Kind != Unchanged {
		return
	}
	v.Media, v.Digest = content.media, content.digest
	v.Truncated = content.truncated
}

// elsewhere follows a revisit record to another URL, where nothing under its own has its content.
func (a *Archive) elsewhere(v Version) (Version, error) {
	if v.Kind != Unchanged || v.Content != (Location{}) {
		return v, nil
	}
	rec, err := a.Read(v.Location)
	if err != nil {
		return v, err
	}
	defer rec.Close()
	url := rec.Fields().URI("WARC-Refers-To-Target-URI")
	date, ok := warc.ParseDate(rec.Get("WARC-Refers-To-Date"))
	if url == "" || !ok {
		return v, nil
	}
	key, _ := urlKey(url)
	// Without fractions in the date, the version that is meant may be later in that second.
	_, err = a.index.back(key, microseconds(date.Add(time.Second))-1, func(e *entry) bool {
		same := v.Digest != "" && v.Digest == e.digest
		if e.kind == Unchanged || !same && (e.kind == Failed || v.Digest.contradicts(e.digest)) {
			return true
		}
		v.Content, v.Media, v.Truncated = a.location(e), e.media, e.truncated
		return false
	})
	return v, err
}

// Versions returns all versions of a URL, from the first to the last. The content of an unchanged
// one is only looked for under this URL: where a revisit record names another, [Archive.At] follows
// it.
func (a *Archive) Versions(url string) ([]Version, error) {
	key, _ := urlKey(url)
	var entries []entry
	_, err := a.index.back(key, never, func(e *entry) bool {
		entries = append(entries, *e)
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	versions := make([]Version, len(entries))
	last := map[Digest]entry{} // the changed one of each digest, and of all, by ""
	for i := range entries {
		until := int64(never)
		if i+1 < len(entries) {
			until = entries[i+1].time
		}
		r := resolved{entry: entries[i], content: entries[i], has: true, until: until}
		if r.entry.kind == Unchanged {
			r.content, r.has = last[r.entry.digest]
		} else if r.entry.kind == Changed {
			last[r.entry.digest], last[""] = r.entry, r.entry
		}
		versions[i] = a.describeResolved(key, &r)
	}
	return versions, nil
}

// describe says what an entry alone tells. The content of an unchanged version is not in it.
func (a *Archive) describe(key string, e *entry, until int64) Version {
	v := Version{URL: e.url, Time: fromMicroseconds(e.time), Kind: e.kind, Status: e.status,
		Media: e.media, Digest: e.digest, Truncated: e.truncated, Location: a.location(e)}
	if v.URL == "" {
		v.URL = keyURL(key)
	}
	if until != never {
		v.Until = fromMicroseconds(until)
	}
	return v
}

// location names the file, which entries only know by its number: names are long, and the same for
// many thousands of entries.
func (a *Archive) location(e *entry) Location {
	return Location{File: a.index.name(e.file), Offset: e.offset, Length: e.length}
}

// reader is a decompressor and the file that it reads.
type reader struct {
	warc *warc.Reader
	file *os.File
	pool *sync.Pool // where the decompressor is from; nil if it has a dictionary
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

// readAt makes the reader read a part of a file, and name it in errors.
func (r *reader) readAt(f io.ReaderAt, name string, offset, length int64) {
	r.warc.ResetAt(named{f, name}, offset, length)
}

// record opens the record at a location. If it cannot, the reader is closed.
func (r *reader) record(f io.ReaderAt, loc Location) (*Record, error) {
	r.readAt(f, loc.File, loc.Offset, loc.Length)
	rec, err := r.warc.Next()
	if err == io.EOF {
		err = &warc.DamageError{File: loc.File, Offset: loc.Offset, Reason: "there is no record"}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return &Record{rec, r}, nil
}

// named is a file with the name that it has in the archive.
type named struct {
	io.ReaderAt
	name string
}

// Name returns the name.
func (n named) Name() string { return n.name }

// reader returns one for a file that is opened elsewhere.
func (a *Archive) reader(name string) (*reader, error) {
	dict, err := a.dict(name)
	if err != nil {
		return nil, err
	}
	return a.readerWith(dict), nil
}

// readerWith takes a decompressor out of the pool, unless it would have to forget a dictionary:
// those are made for one file, and are not kept.
func (a *Archive) readerWith(dict []byte) *reader {
	if dict != nil {
		return &reader{warc: warc.NewReader(nil, warc.ReaderOptions{Verify: true, Dict: dict})}
	}
	if r, ok := a.pool.Get().(*warc.Reader); ok {
		return &reader{warc: r, pool: &a.pool}
	}
	return &reader{warc: warc.NewReader(nil, warc.ReaderOptions{Verify: true}), pool: &a.pool}
}

// dict returns the dictionary that a file of zstd frames begins with, if it does. One that is
// broken is told by who reads the file from there on, or a frame that needs it.
func (a *Archive) dict(name string) ([]byte, error) {
	if filepath.Ext(name) != ".zst" {
		return nil, nil
	}
	if known, ok := a.dicts.Load(name); ok {
		return known.([]byte), nil
	}
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dict, err := warc.ReadDict(f)
	switch {
	case errors.Is(err, warc.ErrDamaged):
		return nil, nil
	case err != nil:
		return nil, err
	}
	// Thousands of files may begin with the same one.
	same, _ := a.dicts.LoadOrStore(sha256.Sum256(dict), dict)
	a.dicts.Store(name, same)
	return same.([]byte), nil
}

// openFile opens a file that may still be written, and renamed at this moment.
func (a *Archive) openFile(name string) (f *os.File, err error) {
	paths := []string{name} // of an imported one
	if !filepath.IsAbs(name) {
		path := filepath.Join(a.dir, name)
		paths = []string{path, path + unfinished, path}
	}
	for _, path := range paths {
		if f, err = os.Open(path); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("archive: read: %w", err)
	}
	return f, nil
}

// Record is a record of the archive. Close it when it was read. It is not safe for concurrent use.
type Record struct {
	*warc.Record
	reader *reader
}

// Read opens the record at a location. With [Version.Content] that is the one that has the body:
//
//	rec, err := a.Read(version.Content)
//	message, err := rec.HTTP()
//	body, err := io.ReadAll(message.Body)
//
// Reading it to its end tells whether it is what was written, by a [warc.DamageError] if not.
func (a *Archive) Read(loc Location) (*Record, error) {
	if loc.Length <= 0 {
		return nil, ErrNotFound
	}
	r, err := a.reader(loc.File)
	if err != nil {
		return nil, err
	}
	if r.file, err = a.openFile(loc.File); err != nil {
		r.close()
		return nil, err
	}
	return r.record(r.file, loc)
}

// Close lets go of the file. It tells damage that no Read has told. Closing again does nothing.
func (rec *Record) Close() error {
	if rec.reader.warc == nil {
		return nil
	}
	err := rec.Record.Close()
	rec.reader.close()
	return err
}
