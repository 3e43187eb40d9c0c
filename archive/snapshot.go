package archive

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/spinneret-go/spinneret/archive/internal/extsort"
)

// DefaultMemory is what a zero Memory in a [Query] stands for.
const DefaultMemory = 64 << 20

// Query says which versions belong to a [Snapshot]. The zero Query is the last version of every
// URL.
type Query struct {
	// From and To delimit the interval. A zero From is the beginning of time, and a zero To is its
	// end. To itself does not belong to the interval.
	From, To time.Time

	// Relations are those in which the validity of a version may be to the interval. 0 means
	// Latest.
	Relations Relations

	// Failed includes error responses. Without it, the last version of a URL that was one leaves
	// the URL out.
	Failed bool

	// Host keeps to the URLs of one host, Site to those of a host and all below it, such as a
	// registrable domain, and Prefix to those that begin like a URL, such as a directory's that
	// ends in a slash. At most one of them may be set; with none, all URLs are meant. The scheme
	// does not count.
	Host, Site, Prefix string

	// Keep is asked for each version before its body is touched. It must not call the archive. nil
	// keeps all.
	Keep func(*Version) bool

	// Memory bounds the bytes for pointers; more of them are sorted on disk. 0 means 64 MiB.
	Memory int
}

// spans returns the ranges of keys to walk, the last one first.
func (q *Query) spans() ([]span, error) {
	set := 0
	spans := everything
	for _, by := range []struct {
		name  string
		spans func(string) []span
	}{{q.Prefix, prefixSpans}, {q.Host, hostSpans}, {q.Site, siteSpans}} {
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

// Snapshot is a set of versions, found and in the order of their addresses. Close it when it is not
// needed any more. It is not safe for concurrent use.
type Snapshot struct {
	archive  *Archive
	pointers *extsort.Sorter
}

// Snapshot finds the versions that a query describes. It walks the index backwards, resolves
// unchanged versions to those that hold their content, and sorts the pointers to these, as in
// Tamura and Kitsuregawa's paper; only then the files are read, by [Snapshot.Documents], and from
// one end to the other.
//
// All that was appended before is in the snapshot. Of what is appended meanwhile, some may be.
func (a *Archive) Snapshot(q Query) (*Snapshot, error) {
	spans, err := q.spans()
	if err != nil {
		return nil, err
	}
	if err := a.flush(); err != nil {
		return nil, err
	}
	if q.Memory <= 0 {
		q.Memory = DefaultMemory
	}
	if q.Relations == 0 {
		q.Relations = Latest
	}
	s := &Snapshot{archive: a, pointers: extsort.New(q.Memory)}
	w := newWalk(a, &q, s.pointers)
	for i := len(spans) - 1; i >= 0 && err == nil; i-- {
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

// flush writes the index if something waits for it.
func (a *Archive) flush() error {
	if a.index.waiting() == 0 {
		return nil
	}
	return a.files.flush(a.index.commit)
}

// Len returns the number of versions.
func (s *Snapshot) Len() int { return s.pointers.Len() }

// Close removes what is on disk of the pointers.
func (s *Snapshot) Close() error { return s.pointers.Close() }

// Versions returns the versions in the order of the addresses of their contents, without reading
// these.
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

// walk goes backwards through the entries of the index, URL by URL.
type walk struct {
	archive   *Archive
	query     *Query
	low, high int64
	out       *extsort.Sorter

	url     []byte
	until   int64              // when the version after the current entry was found
	waiting map[Digest][]found // unchanged ones whose content has not been met yet
	item    []byte
}

// found is a version that was selected.
type found struct {
	entry entry
	until int64
}

// newWalk takes open ends for times that no version has, so that they are compared like all others.
func newWalk(a *Archive, q *Query, out *extsort.Sorter) *walk {
	w := &walk{archive: a, query: q, low: -never, high: never, out: out,
		waiting: map[Digest][]found{}}
	if !q.From.IsZero() {
		w.low = microseconds(q.From)
	}
	if !q.To.IsZero() {
		w.high = microseconds(q.To)
	}
	return w
}

// walkBatch is how many entries are read in one transaction: a long one would keep the index from
// being written.
const walkBatch = 10_000

// span visits the entries of a range of URLs.
func (w *walk) span(s span) error {
	var batch pairs
	for at := []byte(s.high); at != nil; {
		err := w.archive.index.read(func(c *bbolt.Cursor) error {
			at = batch.back(c, s.low, at)
			return nil
		})
		if err != nil {
			return err
		}
		for key, value := range batch.all() {
			if err := w.visit(key, value); err != nil {
				return err
			}
		}
	}
	return w.end()
}

// pairs are keys and values that were copied out of a transaction.
type pairs struct {
	data []byte
	ends []int // of a key, of its value, of the next key, and so on
}

// back reads pairs from before at backwards, as long as keys are not below low. It returns where to
// go on, or nil if there are no more.
func (p *pairs) back(c *bbolt.Cursor, low string, at []byte) (next []byte) {
	p.data, p.ends = p.data[:0], p.ends[:0]
	sought, _ := c.Seek(at)
	for key, value := previous(c, sought); key != nil && string(key) >= low; key, value = c.Prev() {
		p.data = append(p.data, key...)
		p.ends = append(p.ends, len(p.data))
		p.data = append(p.data, value...)
		p.ends = append(p.ends, len(p.data))
		if len(p.ends) == 2*walkBatch {
			return bytes.Clone(key)
		}
	}
	return nil
}

// all returns the pairs in the order in which they were read: backwards.
func (p *pairs) all() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		start := 0
		for i := 0; i < len(p.ends); i += 2 {
			if !yield(p.data[start:p.ends[i]], p.data[p.ends[i]:p.ends[i+1]]) {
				return
			}
			start = p.ends[i+1]
		}
	}
}

// visit looks at one entry.
func (w *walk) visit(key, value []byte) error {
	var e entry
	url, err := e.cutKey(key)
	if err != nil {
		return err
	}
	if !bytes.Equal(url, w.url) {
		if err := w.end(); err != nil {
			return err
		}
		w.url, w.until = append(w.url[:0], url...), never
	}
	// Backwards, the version after this one has been met already: it tells until when this one is
	// valid.
	start, end := e.time, w.until
	w.until = start
	selected := w.query.Relations&relation(start, end, w.low, w.high) != 0
	if !selected && len(w.waiting) == 0 {
		return nil // its value need not be looked at
	}
	if err := e.cutValue(value); err != nil {
		return err
	}
	if err := w.settle(&e); err != nil || !selected {
		return err
	}
	switch {
	case e.kind == Unchanged:
		w.waiting[e.digest] = append(w.waiting[e.digest], found{e, end})
	case e.kind == Changed || w.query.Failed:
		return w.put(&found{e, end}, &e)
	}
	return nil
}

// settle gives the versions that wait for their content that of e, if it is theirs: where a digest
// is known it is the same. There may be as many of them as the URL has versions.
func (w *walk) settle(e *entry) error {
	if e.kind != Changed {
		return nil
	}
	for _, digest := range [...]Digest{e.digest, ""} {
		list := w.waiting[digest]
		delete(w.waiting, digest)
		for i := range list {
			if err := w.put(&list[i], e); err != nil {
				return err
			}
		}
	}
	return nil
}

// end is called behind the first entry of a URL. Versions that still wait may have their content
// under another URL.
func (w *walk) end() error {
	for _, digest := range slices.Sorted(maps.Keys(w.waiting)) {
		for i := range w.waiting[digest] {
			if err := w.follow(&w.waiting[digest][i]); err != nil {
				return err
			}
		}
	}
	clear(w.waiting)
	return nil
}

// follow adds a version whose content has another URL, if there is one to read.
func (w *walk) follow(f *found) error {
	v, err := w.archive.elsewhere(w.archive.describe(string(w.url), &f.entry, f.until))
	if err != nil || v.Content == (Location{}) {
		return nil
	}
	number, _ := w.archive.index.file(v.Content.File)
	return w.put(f, &entry{file: number, offset: v.Content.Offset, length: v.Content.Length,
		media: v.Media, digest: f.entry.digest, truncated: v.Truncated})
}

// put adds a version to the list of pointers.
func (w *walk) put(f *found, content *entry) error {
	if w.query.Keep != nil {
		v := w.archive.describe(string(w.url), &f.entry, f.until)
		v.Content = w.archive.location(content)
		v.from(content)
		if !w.query.Keep(&v) {
			return nil
		}
	}
	w.item = packItem(w.item[:0], w.url, f, content)
	return w.out.Add(w.item)
}
