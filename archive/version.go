package archive

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// Version is a page as found by one visit. It is valid until the next visit.
type Version struct {
	// URL is in the form used by the index: without fragment and default port.
	URL string

	// Time is when it was found, to the microsecond. Until is the Time of the next version of the
	// URL, and zero for the last one.
	Time, Until time.Time

	// Kind is the result of the visit.
	Kind Kind

	// Status is the status code, and Media the type in lower case without parameters.
	Status int
	Media  string

	// ContentStatus is the status code of the record at Content: Status, unless the version is
	// unchanged.
	ContentStatus int

	// Truncated says that the body is incomplete.
	Truncated bool

	// Location is the position of the record, and Content that of the record with the body. They
	// are equal unless the version is unchanged. Content is then that of the version that stores
	// the body, or zero if the archive does not have it.
	Location, Content Location

	// Request is the position of the request record, if the method was not GET. It is zero for GET,
	// and if there is no request record next to the response.
	Request Location

	digest digest
}

// Digest returns the digest of the body as it stands in WARC-Payload-Digest, such as "sha1:3I42H3S6…",
// or "" if it is not known. Equal bodies have equal digests, if the same algorithm was used.
func (v Version) Digest() string { return v.digest.String() }

// At returns the version of a URL that was valid at a time, or [ErrNotFound] if it had not been
// found by then. The zero Time means the last version. It takes about as long for a URL with one
// version as for one with a million.
func (a *Archive) At(url string, t time.Time) (Version, error) {
	key, _ := urlkey.Of(url)
	e, found, until, err := a.index.floor(key, instant(t))
	if err != nil {
		return Version{}, err
	}
	if !found {
		return Version{}, ErrNotFound
	}
	return a.elsewhere(key, a.describe(key, &e, until))
}

// instant returns a time as it stands in keys. The zero Time is later than all.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return never - 1
	}
	return min(microseconds(t), never-1)
}

// contradicts tells whether two digests are those of different bodies. Those of two algorithms tell
// nothing.
func (d digest) contradicts(other digest) bool {
	return d != "" && other != "" && d[0] == other[0] && d != other
}

// elsewhere finds the content of an unchanged version whose entry has no address of it: of a record
// that another program wrote, and whose original came into the archive later, or never.
func (a *Archive) elsewhere(key string, v Version) (Version, error) {
	if v.Kind != Unchanged || v.Content != (Location{}) {
		return v, nil
	}
	e := entry{time: microseconds(v.Time), offset: v.Location.Offset, digest: v.digest, kind: Unchanged}
	e.file, _ = a.index.file(v.Location.File)
	ref, err := a.referenceOf(v.Location)
	if err == nil {
		err = a.resolve(key, &e, ref)
	}
	if err != nil || e.content.length == 0 {
		return v, err
	}
	v.Content, v.ContentStatus = a.location(e.content), e.content.status
	v.Media, v.digest, v.Truncated = e.media, e.digest, e.truncated
	return v, nil
}

// referenceOf reads what a record refers to.
func (a *Archive) referenceOf(loc Location) (reference, error) {
	rec, err := a.open(loc)
	if err != nil {
		return reference{}, err
	}
	defer rec.release()
	return refersTo(rec.Fields()), nil
}

// reference is what a revisit record says of the version that it repeats.
type reference struct {
	url   string // "" if it does not say
	time  int64
	dated bool
}

func refersTo(fields warc.Fields) reference {
	date, ok := warc.ParseDate(fields.Get("WARC-Refers-To-Date"))
	return reference{fields.URI("WARC-Refers-To-Target-URI"), microseconds(date), ok}
}

// resolve finds the content of an unchanged version: what its record refers to, or else the last
// changed version before it that has its digest. Where another URL has the content, and the last
// changed version of its own URL another one, it is a change.
func (a *Archive) resolve(key string, e *entry, ref reference) error {
	found, err := a.resolveReference(key, e, ref)
	if err != nil || found {
		return err
	}
	return a.index.back(key, *e, func(before *entry) bool {
		if before.kind != Changed || e.digest != "" && e.digest != before.digest {
			return true
		}
		e.repeat(before)
		return false
	})
}

// resolveReference is resolve for what a record refers to.
func (a *Archive) resolveReference(key string, e *entry, ref reference) (found bool, err error) {
	if !ref.dated {
		return false, nil
	}
	origin := key
	if ref.url != "" {
		origin, _ = urlkey.Of(ref.url)
	}
	// Without fractions in the date, the version that is meant may be later in that second.
	at := entry{time: ref.time + 1e6 - 1, file: math.MaxUint32, offset: maxOffset}
	var content entry
	err = a.index.back(origin, at, func(before *entry) bool {
		same := e.digest != "" && e.digest == before.digest
		found = before.kind != Unchanged &&
			(same || before.kind == Changed && !e.digest.contradicts(before.digest))
		content = *before
		return !found
	})
	if err != nil || !found {
		return false, err
	}
	if origin != key && e.status != 304 {
		last, any, err := a.index.changedBefore(key, e)
		if err != nil {
			return false, err
		}
		if !any || last.digest != content.digest {
			e.kind = Changed
		}
	}
	e.repeat(&content)
	return true, nil
}

// repeat makes an entry one whose content another one has.
func (e *entry) repeat(content *entry) {
	e.content, e.media, e.truncated = content.body(), content.media, content.truncated
	if content.digest != "" {
		e.digest = content.digest
	}
}

// Versions returns all versions of a URL, from the first to the last.
func (a *Archive) Versions(url string) ([]Version, error) {
	key, _ := urlkey.Of(url)
	entries, err := a.index.versions(key)
	if err != nil {
		return nil, err
	}
	versions := make([]Version, len(entries))
	var history converter
	for i := range entries {
		until := int64(never)
		if i+1 < len(entries) {
			until = entries[i+1].time
		}
		if err := a.contentIn(&history, key, &entries[i]); err != nil {
			return nil, err
		}
		versions[i] = a.describe(key, &entries[i], until)
	}
	return versions, nil
}

// contentIn finds the content of an entry that has no address of it, among the entries before it,
// which history has seen. That takes the same time for each of them, however many there are.
func (a *Archive) contentIn(history *converter, key string, e *entry) error {
	if e.body().length > 0 {
		history.complete(key, e)
		return nil
	}
	ref, err := a.referenceOf(a.location(e.address()))
	if err == nil && ref.dated {
		_, err = a.resolveReference(key, e, ref)
	}
	switch {
	case errors.Is(err, warc.ErrDamaged) || errors.Is(err, fs.ErrNotExist):
		// The version is there, if not what it refers to.
	case err != nil:
		return err
	}
	if e.content.length == 0 {
		history.complete(key, e)
	}
	return nil
}

// describe says what an entry tells.
func (a *Archive) describe(key string, e *entry, until int64) Version {
	v := Version{URL: e.url, Time: fromMicroseconds(e.time), Kind: e.kind, Status: e.status,
		Media: e.media, digest: e.digest, Truncated: e.truncated, Location: a.location(e.address()),
		Content: a.location(e.body()), ContentStatus: e.body().status,
		Request: a.location(e.request())}
	if v.URL == "" {
		v.URL = urlkey.URL(key)
	}
	if until != never {
		v.Until = fromMicroseconds(until)
	}
	return v
}

// location names the file, which the index only knows by its number: names are long, and the same
// for many thousands of entries. Of no address it is none.
func (a *Archive) location(at address) Location {
	if at.length == 0 {
		return Location{}
	}
	return Location{File: a.index.name(at.file), Offset: at.offset, Length: at.length}
}

// reader is a decompressor and the file that it reads.
type reader struct {
	warc *warc.Reader
	file io.Closer
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
func (r *reader) record(f io.ReaderAt, loc Location) (*opened, error) {
	r.readAt(f, loc.File, loc.Offset, loc.Length)
	rec, err := r.warc.Next()
	if err == io.EOF {
		err = &warc.DamageError{File: loc.File, Offset: loc.Offset, Reason: "there is no record"}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return &opened{rec, r}, nil
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

// dict returns the dictionary that a file of zstd frames begins with, if any. A broken one is reported
// when the file is read from its beginning, or a frame that needs it.
func (a *Archive) dict(name string) ([]byte, error) {
	if filepath.Ext(name) != ".zst" {
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
	dict, err := warc.ReadDict(f)
	switch {
	case errors.Is(err, warc.ErrDamaged):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return a.dicts.put(name, dict), nil
}

// opened is a record, and what it is read by. It is not safe for concurrent use.
type opened struct {
	*warc.Record
	reader *reader
}

// release is Close for a record of which only the beginning was wanted.
func (o *opened) release() { o.reader.close() }

// handOver returns the record as one of the caller's, that releases what it is read by when closed.
func (o *opened) handOver() *warc.Record { return o.Detach(o.release) }

// Read opens the record at a location. With [Version.Content] that is the one that has the body:
//
//	rec, err := a.Read(version.Content)
//	message, err := rec.HTTP()
//	body, err := io.ReadAll(message.Body)
//
// Close it when it was read, which gives its file back. Reading it to its end tells whether it is what
// was written, by a [warc.DamageError] if not.
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
	return r.record(f, loc)
}
