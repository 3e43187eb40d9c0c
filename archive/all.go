package archive

import (
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// All returns every version of every URL in the order of the index: URLs by their SURT, and
// versions by time. After the answers to a GET of the whole page come those to other requests, see
// [Version.Method] and [Version.Range]. Content is zero if the index does not know its address, see [Archive.At].
//
// Captures appended before the call are included. Captures appended during the iteration may be.
func (a *Archive) All() iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		a := a.now()
		// A version is valid until the next one, so each is held back for one step.
		var held Version
		var key string // of held
		for l, err := range a.index.scan(urlkey.All) {
			if err != nil {
				yield(Version{}, err)
				return
			}
			v := a.describe(l.url, &l.entry, never)
			if key == l.url {
				held.Until = v.Time
			}
			if key != "" && !yield(held, nil) {
				return
			}
			held, key = v, l.url
		}
		if key != "" {
			yield(held, nil)
		}
	}
}

// ValidAt returns the version of each URL that was valid at a time, in the order of the index, for
// URLs with a SURT such as "org,example,www)/path" that is at least low and less than high. An
// empty high means no upper limit, and the zero Time means the last versions. URLs that were first
// found later are left out. Content is zero if the archive does not have it.
//
// Captures appended before the call are included. Captures appended during the iteration may be. A
// URL costs about the same however many versions it has.
func (a *Archive) ValidAt(t time.Time, low, high string) iter.Seq2[Version, error] {
	if high == "" {
		high = urlkey.All.High
	}
	return func(yield func(Version, error) bool) {
		w := validWalk{archive: a.now(), at: instant(t), yield: yield}
		for from, again := low, true; again; {
			var err error
			if from, again, err = w.scan(urlkey.Span{Low: from, High: high}); err != nil {
				yield(Version{}, err)
				return
			}
		}
	}
}

// validWalk finds the versions that were valid at a time. It is not safe for concurrent use.
type validWalk struct {
	archive *Archive
	at      int64
	yield   func(Version, error) bool

	key   string // of the current URL
	n     int    // of its entries so far
	entry entry  // the last one not later than at
	found bool   // entry is set
	until int64  // the time of the one after it
}

// maxRead is how many entries of a URL are read before a lookup, of about the same cost, skips the
// rest.
const maxRead = 32

// scan walks a range. If it stops inside a URL with many versions, it returns the key from which to
// continue. The keys of a URL without a host may have those of other URLs among them.
func (w *validWalk) scan(within urlkey.Span) (from string, again bool, err error) {
	w.n = 0
	for l, err := range w.archive.index.scan(within) {
		if err != nil {
			return "", false, err
		}
		if w.n == 0 || l.url != w.key {
			if !w.end() {
				return "", false, nil
			}
			w.key, w.n, w.found, w.until = l.url, 0, false, never
		}
		switch w.n++; {
		case l.entry.time <= w.at:
			w.entry, w.found = l.entry, true
		case w.until == never:
			w.until = l.entry.time
		}
		if w.n != maxRead || !strings.Contains(w.key, "\x00") {
			continue
		}
		w.entry, w.found, w.until, err = w.archive.index.floor(w.key, w.at)
		if err != nil || !w.end() {
			return "", false, err
		}
		return w.key + "\x01", true, nil // less than any key after those of the URL
	}
	w.end()
	return "", false, nil
}

// end ends the current URL, and returns whether the caller wants more.
func (w *validWalk) end() bool {
	if w.n == 0 || !w.found || !isPlain(w.key) {
		return true
	}
	v := w.archive.describe(w.key, &w.entry, w.until)
	if known, err := w.archive.withContent(w.key, v); err == nil {
		v = known // otherwise there is no content to read, as in a snapshot
	}
	return w.yield(v, nil)
}

// OpenFile opens a WARC file of the archive for reading, up to its last complete capture. The name
// comes from [Archive.Files] or a [Location].
func (a *Archive) OpenFile(name string) (io.ReadCloser, error) {
	if !isImport(name) {
		name = strings.TrimSuffix(name, unfinished)
	}
	end, known := a.now().index.end(name)
	if !known {
		return nil, fmt.Errorf("archive: open %s: %w", name, os.ErrNotExist)
	}
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	section := io.NewSectionReader(f, 0, end)
	return &part{section, f, name, section}, nil
}

// part is the beginning of a file.
type part struct {
	io.Reader
	io.Closer
	name    string
	section *io.SectionReader
}
