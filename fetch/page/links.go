package page

import (
	"errors"
	"iter"
)

// The limits of one page. They keep a hostile page from turning few bytes into much work.
const (
	MaxURL       = 8 << 10 // bytes of a URL; RFC 9110 asks for at least 8,000
	MaxLinks     = 50_000  // per page, with directives, IDs and what else Scan yields
	MaxLinkBytes = 8 << 20 // total of a page's URLs: a base can make short links long
)

// ErrTooManyLinks ends the iteration over a page that exceeds MaxLinks or MaxLinkBytes.
var ErrTooManyLinks = errors.New("page: too many links")

// Kind says what a link is for.
type Kind uint8

// The kinds of links.
const (
	Anchor    Kind = iota + 1 // a, area: a page to visit
	Frame                     // iframe, frame: a page shown as a part of this one
	Resource                  // img, script, stylesheet and others: needed to show this page
	Redirect                  // meta refresh: the page that comes after this one
	Canonical                 // link rel=canonical: the better name of this page
	Alternate                 // link rel=alternate: this page in another language or format
	Next                      // link rel=next
	Prev                      // link rel=prev
	Related                   // link with any other rel
	Directive                 // meta robots and similar: no URL, but Name and Text
	Title                     // the page's title: no URL, but Text; only if Scan is asked for it
	Meta                      // any other named meta element: likewise, Name and Text
	ID                        // a place on the page that a fragment can name: likewise, Text
)

// Link is one link of a page, or one directive for crawlers.
type Link struct {
	URL      string // absolute, http or https, without fragment and credentials; "" if none
	Kind     Kind
	Rel      string // the rel attribute in lower case, such as "ugc sponsored"; "" if none
	NoFollow bool   // rel says nofollow
	Lang     string // the hreflang attribute in lower case; "" if none
	Type     string // the type attribute of a link element in lower case, such as that of a feed
	Name     string // of a Directive or Meta: its name in lower case, such as "robots"
	Text     string // of a Directive or Meta: its content; of a Title: its text; of an ID: the id
	Fragment string // the place in the URL's page, decoded; "" if none or if Scan is not asked for it
}

// Links returns an iterator over the links of an HTML page, in document order. base is the URL of
// the page, and contentType its Content-Type, or "" if there was none. The page's first base
// element with an href, outside of templates, takes the place of base from there on.
//
// The encoding of the page is determined as the HTML standard says: byte order mark, Content-Type,
// meta elements within the first 1,024 bytes, XML declaration. An undeclared page is UTF-8 if all of
// it is valid, except for a character cut at the end, or if its first 1,024 bytes are and have letters
// beyond ASCII; otherwise it is windows-1252. URLs and texts are returned in UTF-8, except for the
// queries of links, which are percent-encoded in the encoding of the page, as browsers send them. Those
// of a page in ISO-2022-JP are in UTF-8.
//
// Links to a place on the same page ("#top", without a base element) are left out, see [Options].
// So are links longer than [MaxURL], links that do not parse, and those that are neither http nor
// https. All of them count towards [MaxLinks]. An error is yielded once, with a zero Link, last:
// base is not an absolute URL, or the page has too many links ([ErrTooManyLinks]).
//
// Links neither modifies nor keeps body, which must not change during the iteration. The iterator
// can be used again. The strings of neighbouring links share blocks of memory of up to 16 KiB: to
// keep a few of them for a long time, clone them ([strings.Clone]).
func Links(body []byte, base, contentType string) iter.Seq2[Link, error] {
	return Scan(body, base, contentType, Options{})
}

// Options selects what Scan yields besides links. The zero Options selects nothing else.
type Options struct {
	// Styles asks for the URLs in style elements of HTML, not of SVG; false means none.
	Styles bool
	// Meta asks for the title of the page and for its meta elements with a name or property, such
	// as "description" and "og:image"; false means only directives for crawlers.
	Meta bool
	// IDs asks for the places on the page that a fragment can name, for the fragments of links, and
	// for links to a place on the same page; false means none of them. A link leads to a place if
	// its Fragment is the Text of an ID there, or "" or "top" in any case.
	IDs bool
	// Text is called with the pieces of the page's text, in UTF-8. Together they are what a browser
	// shows without styles, but for white space: a line end stands between two blocks, such as
	// paragraphs and cells of a table, and where an image, a script or the like stands; nothing does
	// between parts of a word that are marked up, such as by b. A piece is valid until Text returns,
	// and must not be modified. nil means that text is skipped, which is faster.
	Text func(piece []byte)
}

// Scan is [Links] with more to find in the same pass.
func Scan(body []byte, base, contentType string, opts Options) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		w.opts = opts
		err := w.begin(base)
		if err == nil {
			err = w.walk(w.decoder.open(body, contentType))
		}
		w.end(err)
	}
}

// ToUTF8 returns the text of a page in UTF-8, without a byte order mark, and the name of its
// original encoding: see [Links]. Invalid bytes become U+FFFD. Text that is valid UTF-8 already is
// not copied.
func ToUTF8(body []byte, contentType string) (text []byte, encoding string) {
	var d decoder
	text = d.open(body, contentType)
	encoding = d.encoding().String()
	return d.convert(nil, text), encoding
}
