package archive

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/internal/extsort"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// Query selects the versions of a [Snapshot]. The zero Query selects the last version of every URL.
type Query struct {
	// From and To delimit the interval. A zero From or To means no limit. To itself is not part of
	// the interval.
	From, To time.Time

	// Relations are the allowed relations of a version's validity to the interval. 0 means
	// allen.Latest: the last version of each URL that was found in the interval.
	Relations allen.Relations

	// Failed includes error responses. Without it, a URL whose last version is an error is omitted.
	Failed bool

	// Host selects the URLs of one host, Site those of a host and its subdomains, such as those of
	// a registrable domain. Prefix selects URLs that begin with this one, such as that of a
	// directory; URLs of more than 480 bytes are only found by a Prefix of at most 400. At most one
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
		}
	}
	if set > 1 {
		return nil, errors.New("archive: query: more than one of Host, Site and Prefix is set")
	}
	return spans, nil
}

// Snapshot is a set of versions in the order of their addresses. Close it after use. It is not safe
// for concurrent use.
type Snapshot struct {
	archive  *Archive // as of then
	from     *Archive // finds again what an erasure has moved since
	pointers *extsort.Sorter
}

// Snapshot finds the versions that a query selects. It scans the index, and sorts the pointers to
// their contents by address, as in Tamura and Kitsuregawa's paper. [Snapshot.Documents] then reads
// the files sequentially.
//
// Only answers to a GET of the whole page are pages: see [Archive.Answers] for others. Captures
// appended before the call are in the snapshot. Captures appended during the call may be.
func (a *Archive) Snapshot(q Query) (*Snapshot, error) {
	spans, err := q.spans()
	if err != nil {
		return nil, err
	}
	if a.files.isClosed() {
		return nil, ErrClosed
	}
	from := a
	a = a.now()
	if q.Memory <= 0 {
		q.Memory = defaultMemory
	}
	if q.Relations == 0 {
		q.Relations = allen.Latest
	}
	s := &Snapshot{archive: a, from: from, pointers: extsort.New(q.Memory)}
	w := newWalk(a, &q, s.pointers)
	for i := 0; i < len(spans) && err == nil; i++ {
		err = w.span(spans[i])
	}
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

// walk visits the entries of the index, URL by URL.
type walk struct {
	archive   *Archive
	query     *Query
	low, high int64
	out       *extsort.Sorter
	history   history
	item      []byte
}

// newWalk replaces open ends by times outside the valid range, so that they need no special case.
func newWalk(a *Archive, q *Query, out *extsort.Sorter) *walk {
	w := &walk{archive: a, query: q, low: -never, high: never, out: out}
	if !q.From.IsZero() {
		w.low = ceiling(q.From)
	}
	if !q.To.IsZero() {
		w.high = ceiling(q.To)
	}
	return w
}

// span visits the entries of a range of URLs. A version is valid until the next one, so each is
// held back for one step.
func (w *walk) span(s urlkey.Span) error {
	var held located
	var some bool
	for l, err := range w.archive.index.scan(s) {
		if err != nil {
			return err
		}
		until := int64(never)
		if l.url == held.url {
			until = l.entry.time
		}
		if err := w.archive.contentIn(&w.history, l.url, &l.entry); err != nil {
			return err
		}
		if some {
			if err := w.visit(&held, until); err != nil {
				return err
			}
		}
		held, some = *l, true
	}
	if !some {
		return nil
	}
	return w.visit(&held, never)
}

// visit adds a version to the list of pointers, if it is selected.
func (w *walk) visit(l *located, until int64) error {
	e := &l.entry
	if !isPlain(l.url) {
		return nil
	}
	if w.query.Relations&allen.Of(e.time, until, w.low, w.high) == 0 ||
		e.kind == Failed && !w.query.Failed {
		return nil
	}
	if e.body().length == 0 {
		return nil // there is nothing to read
	}
	if w.query.Keep != nil {
		v := w.archive.describe(l.url, e, until)
		if !w.query.Keep(&v) {
			return nil
		}
	}
	w.item = packItem(w.item[:0], l.url, e, until)
	return w.out.Add(w.item)
}
