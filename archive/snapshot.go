package archive

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/internal/extsort"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// Query selects the versions of a [Snapshot]. The zero Query selects the last version of every URL.
type Query struct {
	// From and To delimit the interval of times, which are cut to microseconds. A zero From or To means no
	// limit. To itself is not part of the interval.
	From, To time.Time

	// Relations are the allowed relations of a version's validity to the interval. 0 means
	// allen.Latest: the last version of each URL that was found in the interval.
	Relations allen.Relations

	// Failed includes error responses. Without it, a URL whose last version is an error is omitted.
	Failed bool

	// Host selects the URLs of one host, without a port, Site those of a host and its subdomains, such as those of
	// a registrable domain. Prefix selects URLs that begin with this one, such as that of a
	// directory; URLs of more than 480 bytes are only found by a Prefix of at most 400. It has international names in
	// Punycode, as the URLs do; a Host or Site may have them in either form. At most one
	// of the three may be set; without any, all URLs are selected. Schemes are ignored.
	Host, Site, Prefix string

	// Keep is called for each version before its body is read, and returns whether to keep it. It
	// must not call the archive. nil keeps all.
	Keep func(*Version) bool

	// Memory bounds the bytes of pointers in memory; beyond it they are sorted on disk. 0 means 64
	// MiB.
	Memory int
}

// spans returns the ranges of keys to scan.
func (q *Query) spans() ([]urlkey.Span, error) {
	set := 0
	spans := []urlkey.Span{urlkey.All}
	for _, by := range []struct {
		name  string
		spans func(string) []urlkey.Span
	}{{q.Prefix, urlkey.Prefix}, {q.Host, urlkey.Host}, {q.Site, urlkey.Site}} {
		if by.name != "" {
			set++
			spans = by.spans(by.name)
			if ascii := asciiHost(by.name); ascii != by.name { // files of other programs may have either
				spans = append(spans, by.spans(ascii)...)
				slices.SortFunc(spans, func(a, b urlkey.Span) int { return strings.Compare(a.Low, b.Low) })
			}
		}
	}
	if set > 1 {
		return nil, errors.New("archive: query: more than one of Host, Site and Prefix is set")
	}
	host := q.Host + q.Site
	if _, port := urlkey.CutPort(host); port != "" || strings.ContainsAny(host, "/?#@ ") { // nothing would be found, or erased
		return nil, fmt.Errorf("archive: query: %.100q is not a host without a port", host)
	}
	return spans, nil
}

// Snapshot is a set of versions in the order of their addresses. Close it after use. It is not safe
// for concurrent use.
type Snapshot struct {
	archive  *Archive // as of then
	pointers *extsort.Sorter
}

// Snapshot finds the versions that a query selects. It scans the index, and sorts the pointers to
// their contents by address, as in Tamura and Kitsuregawa's paper. [Snapshot.Documents] then reads
// the files sequentially.
//
// Only answers to a GET of the whole page are pages: see [Archive.Answers] for others. Captures
// appended before the call are in the snapshot. Captures appended during the call may be.
func (a *Archive) Snapshot(q Query) (*Snapshot, error) {
	if q.Memory <= 0 {
		q.Memory = defaultMemory
	}
	s := &Snapshot{archive: a.now(), pointers: extsort.New(q.Memory)}
	a = s.archive
	var item []byte
	err := a.query(&q, func(l *located, until int64) error {
		if err := a.addContent(l.url, &l.entry); err != nil {
			return err
		}
		if l.entry.body().length == 0 {
			return nil // there is nothing to read
		}
		if q.Keep != nil {
			v := a.describe(l.url, &l.entry, until)
			if !q.Keep(&v) {
				return nil
			}
		}
		item = packItem(item[:0], l.url, &l.entry, until)
		return s.pointers.Add(item)
	})
	if err == nil {
		err = s.pointers.Sort()
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("archive: snapshot: %w", err)
	}
	return s, nil
}

// Len returns the number of versions.
func (s *Snapshot) Len() int { return s.pointers.Len() }

// Close removes the pointers from disk.
func (s *Snapshot) Close() error { return s.pointers.Close() }

// Versions returns the versions in the order of their content addresses, without reading the
// contents.
func (s *Snapshot) Versions() iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		for item, err := range s.pointers.Items() {
			var v Version
			if err == nil {
				v, err = s.archive.unpack(item)
			}
			if err != nil {
				yield(Version{}, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// List yields the versions that a query selects, in the order of the index. Other than a [Snapshot] it
// includes those whose content the archive does not have, and reads nothing but the index: Content is
// zero if the index does not know its address, see [Archive.At]. Keep and Memory have no effect.
func (a *Archive) List(q Query) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		a := a.now()
		err := a.query(&q, a.describing(yield))
		if err != nil && err != errEnough {
			yield(Version{}, fmt.Errorf("archive: list: %w", err))
		}
	}
}

// query visits the entries that a query selects, in the order of the index.
func (a *Archive) query(q *Query, visit func(l *located, until int64) error) error {
	spans, err := q.spans()
	if err != nil {
		return err
	}
	if a.files.isClosed() {
		return ErrClosed
	}
	low, high := q.span()
	relations := cmp.Or(q.Relations, allen.Latest)
	for _, s := range spans {
		err := a.index.valid(s, func(l *located, until int64) error {
			if !isPlain(l.url) || relations&allen.Of(l.entry.time, until, low, high) == 0 ||
				l.entry.kind == Failed && !q.Failed {
				return nil
			}
			return visit(l, until)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// span returns the times that a query names. Open ends are outside the valid range, so that they need no
// special case.
func (q *Query) span() (low, high int64) {
	low, high = -never, never
	if !q.From.IsZero() {
		low = ceiling(q.From)
	}
	if !q.To.IsZero() {
		high = ceiling(q.To)
	}
	return low, high
}

// describing returns a visit that yields versions.
func (a *Archive) describing(yield func(Version, error) bool) func(l *located, until int64) error {
	return func(l *located, until int64) error {
		if !yield(a.describe(l.url, &l.entry, until), nil) {
			return errEnough
		}
		return nil
	}
}
