package archive

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"net/http"
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

	// Method is the method of the request, and Range the part that it asked for, such as
	// "bytes=0-99", if the response is about a part; "" otherwise. If it asked for none, Range is
	// [Unasked]. Without a request record, the method is GET.
	Method, Range string

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

// Digest returns the digest of the body in the form of WARC-Payload-Digest, such as
// "sha1:3I42H3S6…", or "" if it is unknown. Equal bodies have equal digests if the algorithm is the
// same.
func (v Version) Digest() string { return v.digest.String() }

// At returns the version of a URL that was valid at a time, or [ErrNotFound] if the URL had not been found by
// then. Only answers to a GET of the whole page count: see [Archive.Answers]. The zero Time means the last
// version. The URL of an international name has it in Punycode, as it was asked for. The cost does not depend on the
// number of versions.
func (a *Archive) At(url string, t time.Time) (Version, error) {
	a = a.now()
	key, _ := urlkey.Of(url)
	e, found, until, err := a.index.floor(key, instant(t))
	if err != nil {
		return Version{}, err
	}
	if !found {
		return Version{}, ErrNotFound
	}
	if err := a.addContent(key, &e); err != nil {
		return Version{}, err
	}
	return a.describe(key, &e, until), nil
}

// instant returns a time in the form of keys. The zero Time is later than all others.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return never - 1
	}
	return min(microseconds(t), never-1)
}

// contradicts reports whether two digests prove that their bodies differ. Digests of different
// algorithms prove nothing.
func (d digest) contradicts(other digest) bool {
	return d != "" && other != "" && d[0] == other[0] && d != other
}

// referenceOf reads the reference of a record.
func (a *Archive) referenceOf(loc Location) (reference, error) {
	rec, err := a.open(loc)
	if err != nil {
		return reference{}, err
	}
	defer rec.release()
	return refersTo(rec.Fields()), rec.Close() // where damage shows
}

// reference is a revisit record's reference to the version that it repeats.
type reference struct {
	url   string // "" if it is missing
	time  int64
	dated bool // time is set
}

func refersTo(fields warc.Fields) reference {
	date, ok := warc.Field{Value: fields.Get("WARC-Refers-To-Date")}.Date()
	return reference{fields.URI("WARC-Refers-To-Target-URI"), microseconds(date), ok}
}

// resolve finds the content of an unchanged version: the version that its record refers to, or else
// the last changed version before it with the same digest. If the last changed version of its URL has
// other content than the one that it refers to, the version is a change.
func (a *Archive) resolve(key string, e *entry, ref reference) error {
	found, err := a.resolveReference(key, e, ref)
	if err == nil && !found {
		var content entry
		content, found, err = a.index.lastBody(key, *e, func(before *entry) bool {
			return before.kind != Failed && (e.digest == "" || e.digest == before.digest)
		})
		if found {
			e.repeat(&content)
		}
	}
	if err != nil || !found || e.status == http.StatusNotModified {
		return err
	}
	last, any, err := a.index.changedBefore(key, e)
	(&change{last, any}).decides(e)
	return err
}

// resolveReference is resolve by the reference of a record alone.
func (a *Archive) resolveReference(key string, e *entry, ref reference) (found bool, err error) {
	if !ref.dated {
		return false, nil
	}
	origin := key
	if ref.url != "" {
		origin, _ = urlkey.Of(ref.url)
	}
	if plain, _ := cutAsked(key); plain == origin && plain != key {
		// The reference names the URL, but not which of its answers is meant.
		own := ref
		own.url = ""
		if found, err = a.resolveReference(key, e, own); found || err != nil {
			return found, err
		}
	}
	// A date without fractions may mean a version later in that second. One with fractions means itself: a
	// later one of the same digest may go with an erasure that this one outlives.
	at := entry{time: ref.time, file: math.MaxUint32, offset: maxOffset}
	if ref.time%1e6 == 0 {
		at.time += 1e6 - 1
	}
	// An unchanged version has a body if it has found its own.
	content, found, err := a.ownContent(origin, e, ref)
	if err == nil && !found {
		content, found, err = a.index.lastBody(origin, at, func(before *entry) bool {
			same := e.digest != "" && e.digest == before.digest
			return same || before.kind != Failed && !e.digest.contradicts(before.digest)
		})
	}
	if err != nil || !found {
		return false, err
	}
	e.repeat(&content)
	return true, nil
}

// ownContent returns the content of ours that a revisit of ours refers to: a file of another program may claim its
// time and its digest for any body.
func (a *Archive) ownContent(origin string, e *entry, ref reference) (content entry, found bool, err error) {
	if !isOurs(a.index.name(e.file)) {
		return content, false, nil
	}
	at := entry{time: ref.time, file: math.MaxUint32, offset: maxOffset}
	err = a.index.back(origin, at, func(before *entry) bool {
		body := before.body()
		found = before.time == ref.time && before.digest.repeated() == e.digest.repeated() && body.length > 0 && isOurs(a.index.name(body.file))
		content = *before
		return !found && before.time == ref.time
	})
	return content, found, err
}

// repeat makes the entry refer to the content of another one.
func (e *entry) repeat(content *entry) {
	e.content, e.media = content.body(), content.media
	e.truncated, e.coded = content.truncated, content.coded
	if content.digest != "" {
		e.digest = content.digest
	}
}

// Versions returns all versions of a URL, from the first to the last: the answers to a GET of the
// whole page. See [Archive.Answers] for others.
func (a *Archive) Versions(url string) ([]Version, error) {
	key, _ := urlkey.Of(url)
	return a.versionsOf(key)
}

// versionsOf returns all versions of a key.
func (a *Archive) versionsOf(key string) ([]Version, error) {
	a = a.now()
	versions := []Version{}
	err := a.index.valid(urlkey.Span{Low: key + "\x00", High: key + "\x01"}, func(l *located, until int64) error {
		if l.url != key {
			return nil
		}
		if err := a.addContent(key, &l.entry); err != nil {
			return err
		}
		versions = append(versions, a.describe(key, &l.entry, until))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return versions, nil
}

// addContent finds the content of an unchanged version whose entry does not have its address: the content was
// indexed later, or not at all.
func (a *Archive) addContent(key string, e *entry) error {
	if e.body().length > 0 {
		return nil
	}
	ref, err := a.referenceOf(a.location(e.address()))
	if errors.Is(err, warc.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		err = nil // the version exists, but its reference cannot be read
	}
	if err != nil {
		return err
	}
	return a.resolve(key, e, ref)
}

// describe returns the version of an entry.
func (a *Archive) describe(key string, e *entry, until int64) Version {
	v := Version{URL: e.url, Time: fromMicroseconds(e.time), Kind: e.kind, Status: e.status,
		Media: e.media, digest: e.digest, Truncated: e.truncated, Location: a.location(e.address()),
		Content: a.location(e.body()), ContentStatus: e.body().status,
		Request: a.location(e.request())}
	plain, q := cutAsked(key)
	v.Method, v.Range = cmp.Or(q.method, http.MethodGet), q.part
	if v.URL == "" {
		v.URL = urlkey.URL(plain)
	}
	if until != never {
		v.Until = fromMicroseconds(until)
	}
	return v
}

// location resolves the number of a file, which is shorter than a name in every entry. The zero
// address has the zero location.
func (a *Archive) location(at address) Location {
	if at.length == 0 {
		return Location{}
	}
	return Location{File: a.index.name(at.file), Offset: at.offset, Length: at.length}
}
