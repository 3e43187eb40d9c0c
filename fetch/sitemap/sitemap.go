package sitemap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// The limits of one document. The first two are those of the sitemap protocol.
const (
	MaxEntries = 50_000
	MaxBytes   = 50 << 20 // after decompression
	MaxToken   = 1 << 20  // bytes of one tag, comment or text
)

// maxURL is the length in bytes beyond which a URL is left out, and maxAdded the total by which URLs may
// be longer than what the document says, with each byte escaped: a base can make short URLs long.
const (
	maxURL   = 8 << 10
	maxAdded = 8 << 20
)

// The errors that end an iteration early.
var (
	ErrFormat   = errors.New("sitemap: not a sitemap or feed")
	ErrTooLarge = errors.New("sitemap: too large")
)

// Kind says where an Entry leads.
type Kind uint8

// The kinds of entries.
const (
	Page    Kind = iota + 1 // a page of the site
	Sitemap                 // another sitemap, from a sitemap index
	Item                    // an item of an RSS or Atom feed
)

// Entry is one entry of a sitemap or feed. All fields but the URL are hints by the site's owner,
// and many of them are set once and never updated.
type Entry struct {
	URL     string // absolute, http or https, without fragment and credentials
	Kind    Kind
	LastMod time.Time // when the page changed last; zero if not said
	Title   string    // of an Item, on one line; it may contain markup if the feed's titles do
	ID      string    // of an Item: its guid or id, which stays if the URL changes; "" if none
}

// Entries returns a single-use iterator over the entries of a sitemap or feed. base is the URL that
// it was fetched from. Of all attributes xml:base, only that of the root element is applied.
//
// It reads no more of r than necessary, and never more than MaxBytes. Entries without a usable URL
// are left out. The time is linear in what is read, also if nothing is yielded. To stop a loop that
// is waiting for its next entry, make r fail: it is read in pieces of 4 KiB, or of 64 KiB
// at the beginning of a document that declares another encoding than UTF-8. An error is yielded
// once, with a zero Entry, last: [ErrFormat], [ErrTooLarge], also if a base makes the
// URLs 8 MiB longer than three times what the document says, a base that is not an absolute URL or
// is longer than 8 KiB, io.ErrUnexpectedEOF for a document that ends within a tag, or an error of
// r. The entries before it are valid.
func Entries(r io.Reader, base string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		l := lister{yield: yield, left: MaxEntries, total: MaxBytes}
		if err := l.walk(r, base); err != nil && err != errStop {
			yield(Entry{}, fmt.Errorf("sitemap: read: %w", err))
		}
	}
}

var errLongBase = errors.New("base longer than 8 KiB")

// errStop means that the caller has left the loop.
var errStop = errors.New("stop")

// lister is one pass over one sitemap.
type lister struct {
	yield func(Entry, error) bool
	src   source
	refs  weburl.Resolver
	left  int // entries until MaxEntries
	added int // bytes of URLs that are not in the document
	total int // bytes that may be read
	buf   []byte
}

func (l *lister) walk(r io.Reader, base string) error {
	if len(base) > maxURL {
		return errLongBase
	}
	u, err := weburl.Parse(base, nil)
	if err != nil {
		return err
	}
	l.refs.Reset(u)
	if l.src.r, err = open(r, l.total); err != nil {
		return err
	}
	l.src.left = l.total
	switch first, err := l.src.first(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case first == '<':
		return l.document()
	}
	return l.lines()
}

// maxLine leaves room for white space around a URL.
const maxLine = 2 * maxURL

// lines yields the URLs of a text sitemap, one per line. It requires that there is some text.
func (l *lister) lines() error {
	urls := false
	for {
		line, err := l.src.line(maxLine)
		if err != nil && err != io.EOF {
			return err
		}
		// Only absolute URLs count: other text files are full of relative ones.
		if isWhole(trimmed(line)) {
			urls = true
			if err := l.emit(Entry{Kind: Page}, line); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && !urls:
			return ErrFormat
		case err == io.EOF:
			return nil
		}
	}
}

// isWhole reports whether text is an absolute URL of the web.
func isWhole(text []byte) bool {
	u, err := weburl.Parse(string(text), nil)
	return err == nil && weburl.IsWeb(&u)
}

// emit resolves raw to an absolute URL and yields e with it.
func (l *lister) emit(e Entry, raw []byte) error {
	if l.left--; l.left < 0 {
		return ErrTooLarge
	}
	raw = trimmed(raw)
	if len(raw) == 0 || len(raw) > maxURL {
		return nil
	}
	var ok bool
	l.buf, ok = l.refs.Append(l.buf[:0], raw)
	// Charge first: a URL that is left out costs work, too.
	if l.added += max(len(l.buf)-len("%00")*len(raw), 0); l.added > maxAdded {
		return ErrTooLarge
	}
	if !ok || len(l.buf) > maxURL {
		return nil
	}
	e.URL = string(l.buf)
	if !l.yield(e, nil) {
		return errStop
	}
	return nil
}

// trimmed returns b without the white space around it.
func trimmed(b []byte) []byte { return bytes.Trim(b, " \t\n\f\r") }
