package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"golang.org/x/net/html"
)

// The limits of Links, besides MaxURL. They keep a hostile page from making much work, or a large
// buffer, out of few bytes.
const (
	MaxLinks     = 50_000  // per page
	MaxLinkBytes = 8 << 20 // of all of a page's URLs together: a base can make short links long
	MaxToken     = 4 << 20 // bytes of one tag, comment, script or run of text
)

// ErrTooManyLinks ends the walk over a page beyond MaxLinks or MaxLinkBytes.
var ErrTooManyLinks = errors.New("fetch: too many links")

// LinkKind says what a link is for.
type LinkKind uint8

// The kinds of links.
const (
	Anchor    LinkKind = iota + 1 // a, area: a page to visit
	Frame                         // iframe, frame: a page shown as a part of this one
	Resource                      // img, script, stylesheet and others: needed to show this page
	Redirect                      // meta refresh: the page that comes after this one
	Canonical                     // link rel=canonical: the better name of this page
	Alternate                     // link rel=alternate: this page in another language or format
	Next                          // link rel=next
	Prev                          // link rel=prev
	Related                       // link with any other rel
	Directive                     // meta robots and its like: no URL, but Name and Text
)

// Link is one link of a page, or one directive for crawlers.
type Link struct {
	URL      string // absolute, http or https, without fragment and credentials; "" for a Directive
	Kind     LinkKind
	Rel      string // the rel attribute in lower case; "" if none
	NoFollow bool   // rel says nofollow
	Name     string // of a Directive: the meta element's name in lower case, such as "robots"
	Text     string // of a Directive: the meta element's content
}

// Links returns an iterator over the links of an HTML page, in document order. base is the page's
// URL; the page's first base element with an href takes its place from there on. The page may be in
// any encoding that contains ASCII; bytes that are no UTF-8 come out as U+FFFD.
//
// Left out are links that lead nowhere else ("#top", while there is no base element), that are
// longer than [MaxURL], that do not parse, and that are neither http nor https. They count towards
// [MaxLinks] all the same. An error is yielded once, with a zero Link, last: base is no absolute
// URL, the page has too many links ([ErrTooManyLinks]) or a token of more than MaxToken bytes.
// Links neither changes nor keeps page, and the iterator can be used again.
//
// A directive is a meta element named robots, or of any name with a content that is made of words
// for crawlers; which names to heed is up to the caller.
func Links(page []byte, base string) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := walker{yield: yield, left: MaxLinks, room: MaxLinkBytes}
		if err := w.walk(page, base); err != nil && err != errStop {
			yield(Link{}, err)
		}
	}
}

// errStop says that the caller has left the loop.
var errStop = errors.New("stop")

// walker is one walk over one page.
type walker struct {
	yield func(Link, error) bool
	base  weburl.URL
	based bool // a base element was met
	left  int  // URLs until MaxLinks
	room  int  // bytes until MaxLinkBytes
	tag   tag
	buf   []byte // for one URL
}

func (w *walker) walk(page []byte, base string) (err error) {
	if len(base) > MaxURL {
		return fmt.Errorf("fetch: parse base: %w", errLong)
	}
	if w.base, err = weburl.Parse(base, nil); err != nil {
		return fmt.Errorf("fetch: parse base: %w", err)
	}
	z := html.NewTokenizer(bytes.NewReader(page))
	// The tokenizer copies each token into a buffer of its own.
	z.SetMaxBuf(MaxToken)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); err != io.EOF {
				return fmt.Errorf("fetch: read page: %w", err)
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			if !w.tag.read(z) {
				continue
			}
			if err := w.element(); err != nil {
				return err
			}
		}
	}
}

// element yields the links of the tag that was read.
func (w *walker) element() error {
	switch t := &w.tag; t.element {
	case elemAnchor:
		return w.hyperlink(Anchor)
	case elemFrame:
		return w.resource(Frame, attrSrc)
	case elemMedia:
		// The order is that of the attributes' importance, not of their place in the tag.
		for _, a := range []attr{attrSrc, attrData, attrPoster} {
			if err := w.resource(Resource, a); err != nil {
				return err
			}
		}
		return w.srcset(attrSrcset)
	case elemSVGImage:
		return w.resource(Resource, t.hrefAttr())
	case elemInput:
		if !equalFold(t.value[attrType], "image") {
			return nil
		}
		return w.resource(Resource, attrSrc)
	case elemLink:
		return w.link()
	case elemMeta:
		return w.meta()
	case elemBase:
		w.rebase()
	}
	return nil
}

// hyperlink yields the tag's href, also an empty one, which means this page.
func (w *walker) hyperlink(kind LinkKind) error {
	t := &w.tag
	href := t.hrefAttr()
	if !t.has(href) {
		return nil
	}
	rel := lowered(t.value[attrRel])
	l := Link{Kind: kind, Rel: rel, NoFollow: hasToken(rel, "nofollow")}
	return w.emit(l, t.value[href])
}

// resource yields the URL in a, unless it is empty: nothing is loaded then.
func (w *walker) resource(kind LinkKind, a attr) error {
	if v := trimmed(w.tag.value[a]); len(v) > 0 {
		return w.emit(Link{Kind: kind}, v)
	}
	return nil
}

func (w *walker) srcset(a attr) error {
	for url := range srcsetURLs(w.tag.value[a]) {
		if err := w.emit(Link{Kind: Resource}, url); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) link() error {
	t := &w.tag
	kind := relKind(lowered(t.value[attrRel]))
	if kind == 0 {
		return nil
	}
	if len(trimmed(t.value[attrHref])) > 0 {
		if err := w.hyperlink(kind); err != nil {
			return err
		}
	}
	return w.srcset(attrImagesrcset)
}

func (w *walker) meta() error {
	t := &w.tag
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
	l := Link{Kind: Directive, Name: lowered(name), Text: string(trimmed(content))}
	return w.pass(l)
}

// rebase heeds a base element. The first one with an href is the last one that counts, even if its
// href is unusable.
func (w *walker) rebase() {
	t := &w.tag
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
	u, err := weburl.Parse(string(href), &w.base)
	if err != nil || !isWeb(&u) || w.tooLong(&u) {
		return
	}
	w.base = u
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
	text := string(raw)
	u, err := weburl.Parse(text, &w.base)
	if err != nil || !isWeb(&u) {
		return nil
	}
	u.Username, u.Password = "", ""
	if w.tooLong(&u) {
		return nil
	}
	if w.room -= len(w.buf); w.room < 0 {
		return ErrTooManyLinks
	}
	// A link that is in normal form already needs no second string.
	if l.URL = text; string(w.buf) != text {
		l.URL = string(w.buf)
	}
	return w.pass(l)
}

// tooLong leaves u, without its fragment, in w.buf.
func (w *walker) tooLong(u *weburl.URL) bool {
	w.buf = u.Append(w.buf[:0], false)
	return len(w.buf) > MaxURL
}

func (w *walker) pass(l Link) error {
	if !w.yield(l, nil) {
		return errStop
	}
	return nil
}

func isWeb(u *weburl.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }
