package sitemap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// The limits of one document. The first two are those of the sitemap protocol.
const (
	MaxEntries = 50_000
	MaxBytes   = 50 << 20 // after decompression
	MaxToken   = 1 << 20  // bytes of one tag, comment or run of text
)

// maxURL is the length in bytes beyond which a URL is left out.
const maxURL = 8 << 10

// What ends a walk over a sitemap early.
var (
	ErrFormat   = errors.New("sitemap: not a sitemap or feed")
	ErrTooLarge = errors.New("sitemap: too large")
)

// Kind says what an Entry leads to.
type Kind uint8

// The kinds of entries.
const (
	Page    Kind = iota + 1 // a page of the site
	Sitemap                 // another sitemap, from a sitemap index
	Item                    // an item of an RSS or Atom feed
)

// Entry is one entry of a sitemap or feed. All but the URL are hints of the site's owner, and many
// of them are set once and never kept up.
type Entry struct {
	URL        string // absolute, http or https, without fragment and credentials
	Kind       Kind
	LastMod    time.Time // when the page changed last; zero if not said
	ChangeFreq string    // "always", "hourly", ... "yearly", "never"; "" if not said
	Priority   float64   // among the site's own pages, from 0 to 1; 0.5 if not said
}

// Entries returns a single-use iterator over what a sitemap lists: sitemap.xml, a sitemap index, a
// list of URLs as text, RSS 0.9 to 2.0 or Atom, each of them gzipped or not. base is the URL that
// it was got from.
//
// It reads no more of r than it must, and never more than MaxBytes. Entities that a document
// declares are not resolved, neither its own nor external ones. Entries without a usable URL are
// left out. Whether a URL may be listed there (the protocol wants the same host) is up to the
// caller. An error is yielded once, with a zero Entry, last; the entries before it are good.
func Entries(r io.Reader, base string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		l := lister{yield: yield, left: MaxEntries, total: MaxBytes}
		if err := l.walk(r, base); err != nil && err != errStop {
			yield(Entry{}, fmt.Errorf("sitemap: read: %w", err))
		}
	}
}

// errStop says that the caller has left the loop.
var errStop = errors.New("stop")

// trimmed returns b without the white space around it.
func trimmed(b []byte) []byte { return bytes.Trim(b, " \t\n\f\r") }

// lister is one walk over one sitemap.
type lister struct {
	yield func(Entry, error) bool
	src   *meter
	refs  weburl.Resolver
	left  int // entries until MaxEntries
	total int // bytes that may be read
	buf   []byte
}

func (l *lister) walk(r io.Reader, base string) error {
	u, err := weburl.Parse(base, nil)
	if err != nil {
		return err
	}
	l.refs.Reset(u)
	if l.src, err = openSitemap(r, l.total); err != nil {
		return err
	}
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

// openSitemap undoes gzip, which for sitemaps is a format and not only a content coding, and skips
// what may stand before a document.
func openSitemap(r io.Reader, total int) (*meter, error) {
	// Gzip can go on for ever without a byte of the document in it.
	br := bufio.NewReader(&ceiling{r, total})
	if magic, _ := br.Peek(2); string(magic) == "\x1f\x8b" {
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, err
		}
		br = bufio.NewReader(zr)
	}
	if mark, _ := br.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = br.Discard(len(mark))
	}
	return &meter{Reader: br, total: total, token: MaxToken}, nil
}

// lines yields the URLs of a sitemap in text, one a line. It requires that there is some text.
func (l *lister) lines() error {
	urls := false
	for {
		line, err := l.src.line()
		if err != nil && err != io.EOF {
			return err
		}
		// Only a whole URL counts: what is no sitemap would be full of relative ones.
		if u, bad := weburl.Parse(string(trimmed(line)), nil); bad == nil && weburl.IsWeb(&u) {
			urls = true
			if err := l.emit(Entry{Kind: Page, Priority: 0.5}, line); err != nil {
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

// emit makes raw absolute and yields e with it.
func (l *lister) emit(e Entry, raw []byte) error {
	if l.left--; l.left < 0 {
		return ErrTooLarge
	}
	raw = trimmed(raw)
	if len(raw) == 0 || len(raw) > maxURL {
		return nil
	}
	var ok bool
	if l.buf, ok = l.refs.Append(l.buf[:0], raw); !ok || len(l.buf) > maxURL {
		return nil
	}
	e.URL = string(l.buf)
	if !l.yield(e, nil) {
		return errStop
	}
	return nil
}

// ceiling is a reader that fails when more than left bytes come from it.
type ceiling struct {
	io.Reader
	left int
}

// Read implements io.Reader.
func (c *ceiling) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left -= n; c.left < 0 {
		err = ErrTooLarge
	}
	return n, err
}

// meter counts what is read, for the document and for the token at hand.
type meter struct {
	*bufio.Reader
	total, token int
	text         []byte // of a line
}

// ReadByte implements io.ByteReader, through which package xml reads.
func (m *meter) ReadByte() (byte, error) {
	c, err := m.Reader.ReadByte()
	if err != nil {
		return 0, err
	}
	if m.total--; m.total < 0 {
		return 0, ErrTooLarge
	}
	if m.token--; m.token < 0 {
		return 0, ErrTooLarge
	}
	return c, nil
}

// first returns the first byte that is no white space, and skips up to it.
func (m *meter) first() (byte, error) {
	for {
		next, err := m.Peek(1)
		if err != nil {
			return 0, err
		}
		if len(trimmed(next)) > 0 {
			return next[0], nil
		}
		if _, err := m.ReadByte(); err != nil {
			return 0, err
		}
	}
}

// maxLine leaves room for white space around a URL.
const maxLine = 2 * maxURL

// line returns the next line, good until the next call. Of one that is too long for a URL it
// returns nothing.
func (m *meter) line() ([]byte, error) {
	m.text = m.text[:0]
	tooLong := false
	for {
		piece, err := m.ReadSlice('\n')
		if m.total -= len(piece); m.total < 0 {
			return nil, ErrTooLarge
		}
		if tooLong = tooLong || len(m.text)+len(piece) > maxLine; !tooLong {
			m.text = append(m.text, piece...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case tooLong:
			return nil, err
		default:
			return bytes.TrimSuffix(m.text, []byte("\n")), err
		}
	}
}
