package page

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"golang.org/x/net/html"
)

// The limits of one page. They keep a hostile page from turning few bytes into much work.
const (
	MaxURL       = 8 << 10 // bytes of a URL; RFC 9110 asks for at least 8,000
	MaxLinks     = 50_000  // per page
	MaxLinkBytes = 8 << 20 // of all of a page's URLs together: a base can make short links long
)

var errLongBase = errors.New("page: parse base: longer than MaxURL")

// ErrTooManyLinks ends the walk over a page beyond MaxLinks or MaxLinkBytes.
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
	Directive                 // meta robots and its like: no URL, but Name and Text
	Form                      // where a form is sent; only if Scan is asked for it
	Title                     // the page's title: no URL, but Text; only if Scan is asked for it
)

// Link is one link of a page, or one directive for crawlers.
type Link struct {
	URL      string // absolute, http or https, without fragment and credentials; "" if Kind has none
	Kind     Kind
	Rel      string // the rel attribute in lower case, such as "ugc sponsored"; "" if none
	NoFollow bool   // rel says nofollow
	Lang     string // the hreflang attribute in lower case; "" if none
	Type     string // the type attribute of a link element in lower case, such as that of a feed
	Name     string // of a Directive: the meta element's name in lower case, such as "robots"
	Text     string // of a Directive: the meta element's content; of a Title: its text
}

// Links returns an iterator over the links of an HTML page, in document order. base is the page's
// URL; the page's first base element with an href takes its place from there on. The page may be in
// any encoding that contains ASCII; bytes that are no UTF-8 come out as U+FFFD.
//
// Left out are links that lead nowhere else ("#top", while there is no base element), that are
// longer than [MaxURL], that do not parse, and that are neither http nor https. They count towards
// [MaxLinks] all the same. An error is yielded once, with a zero Link, last: base is no absolute
// URL, or the page has too many links ([ErrTooManyLinks]). Links neither changes nor keeps page,
// which must not change during the walk, and the iterator can be used again.
//
// The strings of neighbouring links share blocks of memory of up to 16 KiB. Whoever keeps few of
// them for long should keep copies made by [strings.Clone].
//
// A directive is a meta element named robots, or of any name with a content that is made of words
// for crawlers; which names to heed is up to the caller.
func Links(body []byte, base, contentType string) iter.Seq2[Link, error] {
	return Scan(body, base, contentType, Options{})
}

// Options says what Scan yields beside the links that Links does.
type Options struct {
	// Forms asks for where forms are sent; false means that they are left out. To follow one is to
	// press a button, and some buttons do something.
	Forms bool
	// Styles asks for the URLs in style elements; false means that they are left out.
	Styles bool
	// Title asks for the page's title; false means that it is left out.
	Title bool
	// Text is called with each piece of text between two tags, as it is written: character
	// references are not undone. The piece is a part of the page. nil means that texts are skipped,
	// which is faster.
	Text func(piece []byte)
}

// Scan is [Links] with more to find in the same pass.
func Scan(body []byte, base, contentType string, opts Options) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		w.opts = opts
		w.scan.text = opts.Text
		text, name, err := ToUTF8(body, contentType)
		if name == "utf-8" {
			text = bytes.TrimPrefix(body, utf8BOM) // the scanner replaces wrong bytes one by one
		}
		if err == nil {
			err = w.walk(text, base)
		}
		w.end(err)
	}
}

// errStop says that the caller has left the loop.
var errStop = errors.New("stop")

// walker is one walk over one page.
type walker struct {
	yield   func(Link, error) bool
	opts    Options
	scan    scanner
	refs    weburl.Resolver
	based   bool   // a base element was met
	titled  bool   // the title was met; those that follow are in SVG
	left    int    // URLs until MaxLinks
	room    int    // bytes until MaxLinkBytes
	buf     []byte // for one URL
	strings arena
	short   [256]byte // buf, as long as that is enough
}

func newWalker(yield func(Link, error) bool) *walker {
	w := &walker{yield: yield, left: MaxLinks, room: MaxLinkBytes}
	w.buf = w.short[:0]
	return w
}

// end yields the error that ended the walk, if it is one for the caller.
func (w *walker) end(err error) {
	if err != nil && err != errStop {
		w.yield(Link{}, err)
	}
}

func (w *walker) walk(page []byte, base string) error {
	if err := w.begin(base); err != nil {
		return err
	}
	w.scan.page = page
	w.strings.expect(len(page))
	for w.scan.next() {
		if err := w.element(&w.scan.tag); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) begin(base string) error {
	if len(base) > MaxURL {
		return errLongBase
	}
	u, err := weburl.Parse(base, nil)
	if err != nil {
		return fmt.Errorf("page: parse base: %w", err)
	}
	w.refs.Reset(u)
	return nil
}

// element yields the links of the tag that was read.
func (w *walker) element(t *tag) error {
	switch t.element {
	case elemAnchor:
		return w.hyperlink(t, Anchor)
	case elemFrame:
		return w.resource(Frame, t.value[attrSrc])
	case elemMedia:
		// The order is that of the attributes' importance, not of their place in the tag.
		for _, a := range []attr{attrSrc, attrData, attrPoster} {
			if err := w.resource(Resource, t.value[a]); err != nil {
				return err
			}
		}
		return w.srcset(t.value[attrSrcset])
	case elemSVGImage:
		return w.resource(Resource, t.value[t.hrefAttr()])
	case elemInput:
		return w.input(t)
	case elemLink:
		return w.link(t)
	case elemMeta:
		return w.meta(t)
	case elemBase:
		w.rebase(t)
	case elemForm, elemTitle, elemStyle:
		return w.asked(t)
	}
	return nil
}

// asked yields what Links leaves out.
func (w *walker) asked(t *tag) error {
	switch {
	case t.element == elemForm && w.opts.Forms:
		if err := w.resource(Form, t.value[attrAction]); err != nil {
			return err
		}
		return w.resource(Form, t.value[attrFormaction])
	case t.element == elemTitle && w.opts.Title && !w.titled:
		w.titled = true
		return w.pass(Link{Kind: Title, Text: titleText(w.scan.content)})
	case t.element == elemStyle && w.opts.Styles:
		return w.styles(w.scan.content)
	}
	return nil
}

// maxTitle is longer than any title that somebody reads.
const maxTitle = 1 << 10

// titleText returns a title as browsers show it: with its references undone, on one line.
func titleText(content []byte) string {
	if len(content) > maxTitle {
		end := maxTitle
		for end > maxTitle-utf8.UTFMax && !utf8.RuneStart(content[end]) {
			end-- // not in the middle of a character
		}
		content = content[:end]
	}
	text := html.UnescapeString(strings.ToValidUTF8(string(content), "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

// hyperlink yields the tag's href, also an empty one, which means this page.
func (w *walker) hyperlink(t *tag, kind Kind) error {
	href := t.hrefAttr()
	if !t.has(href) {
		return nil
	}
	rel := w.lowered(t.value[attrRel])
	l := Link{Kind: kind, Rel: rel, NoFollow: hasToken(rel, "nofollow")}
	l.Lang = w.lowered(t.value[attrHreflang])
	// Of an anchor it says nothing that a crawler could rely on.
	if t.element == elemLink {
		l.Type = w.lowered(t.value[attrType])
	}
	return w.emit(l, t.value[href])
}

// input yields the picture of a button, and where the button sends its form.
func (w *walker) input(t *tag) error {
	if equalFold(t.value[attrType], "image") {
		if err := w.resource(Resource, t.value[attrSrc]); err != nil {
			return err
		}
	}
	if w.opts.Forms {
		return w.resource(Form, t.value[attrFormaction])
	}
	return nil
}

// resource yields the URL in value, unless it is empty: nothing is loaded then.
func (w *walker) resource(kind Kind, value []byte) error {
	if value = trimmed(value); len(value) > 0 {
		return w.emit(Link{Kind: kind}, value)
	}
	return nil
}

// srcset yields the URLs in value. A browser would load one of them; which one depends on its
// screen, so that an archive needs all.
func (w *walker) srcset(value []byte) error {
	if len(value) == 0 {
		return nil
	}
	for url := range srcsetURLs(value) {
		if err := w.emit(Link{Kind: Resource}, url); err != nil {
			return err
		}
	}
	return nil
}

// link yields where a link element leads. One that preloads a picture may have its URLs in
// imagesrcset alone.
func (w *walker) link(t *tag) error {
	kind := relKind(w.lowered(t.value[attrRel]))
	if kind == 0 {
		return nil
	}
	if len(trimmed(t.value[attrHref])) > 0 {
		if err := w.hyperlink(t, kind); err != nil {
			return err
		}
	}
	return w.srcset(t.value[attrImagesrcset])
}

// meta yields a redirect or a directive; all other meta elements are for browsers and search
// engines.
func (w *walker) meta(t *tag) error {
	content := t.value[attrContent]
	if equalFold(t.value[attrHTTPEquiv], "refresh") {
		if url := refreshURL(content); len(url) > 0 {
			return w.emit(Link{Kind: Redirect}, url)
		}
		return nil
	}
	name := trimmed(t.value[attrName])
	if len(name) == 0 || !equalFold(name, "robots") && !isDirective(content) {
		return nil
	}
	text := trimmed(content)
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	return w.pass(Link{Kind: Directive, Name: w.lowered(name), Text: w.strings.add(text)})
}

// rebase heeds a base element. The first one with an href is the last one that counts, even if its
// href is unusable.
func (w *walker) rebase(t *tag) {
	if w.based || !t.has(attrHref) {
		return
	}
	w.based = true
	href := trimmed(t.value[attrHref])
	if len(href) > MaxURL {
		return
	}
	// A base of another scheme would leave every link of the page out; browsers ignore
	// javascript: and data: here as well.
	base := w.refs.Base()
	u, err := weburl.Parse(string(href), &base)
	if err != nil || !weburl.IsWeb(&u) {
		return
	}
	if w.buf = u.Append(w.buf[:0], false); len(w.buf) <= MaxURL {
		w.refs.Reset(u)
	}
}

// emit makes raw absolute and yields l with it.
func (w *walker) emit(l Link, raw []byte) error {
	raw = trimmed(raw)
	if len(raw) > 0 && raw[0] == '#' && !w.based {
		return nil
	}
	// Counted before it is looked at: a link that is left out is work, too.
	if w.left--; w.left < 0 {
		return ErrTooManyLinks
	}
	if len(raw) > MaxURL {
		return nil
	}
	var ok bool
	if w.buf, ok = w.refs.Append(w.buf[:0], raw); !ok || len(w.buf) > MaxURL {
		return nil
	}
	if w.room -= len(w.buf); w.room < 0 {
		return ErrTooManyLinks
	}
	l.URL = w.strings.add(w.buf)
	return w.pass(l)
}

func (w *walker) pass(l Link) error {
	if !w.yield(l, nil) {
		return errStop
	}
	return nil
}
