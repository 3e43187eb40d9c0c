package page

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"golang.org/x/net/html"
)

var errLongBase = errors.New("page: parse base: longer than MaxURL")

// errStop means that the caller has left the loop.
var errStop = errors.New("stop")

// walker is one pass over one page.
type walker struct {
	yield   func(Link, error) bool
	opts    Options
	scan    scanner
	decoder decoder
	refs    weburl.Resolver
	based   bool   // a base element was seen
	titled  bool   // a title was seen; browsers show the first one
	left    int    // URLs left until MaxLinks
	room    int    // bytes left until MaxLinkBytes
	buf     []byte // for one URL
	strings arena
	short   [256]byte // initial memory of buf
}

func newWalker(yield func(Link, error) bool) *walker {
	w := &walker{yield: yield, left: MaxLinks, room: MaxLinkBytes}
	w.buf = w.short[:0]
	return w
}

// end yields the error that ended the walk, if the caller is to see it.
func (w *walker) end(err error) {
	if err != nil && err != errStop {
		w.yield(Link{}, err)
	}
}

// begin sets the URL of the page.
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

// walk yields the links of a page that the decoder has opened.
func (w *walker) walk(text []byte) error {
	w.strings.expect(len(text))
	if d := &w.decoder; !d.known || d.page != nil {
		w.refs.Encoder = d.encode
	}
	w.scan = scanner{page: text, xml: w.decoder.xml, decoder: &w.decoder, text: w.opts.Text, ids: w.opts.IDs}
	for w.scan.next() {
		if err := w.element(&w.scan.tag); err != nil {
			return err
		}
	}
	return nil
}

// element yields the links of the tag that was just read.
func (w *walker) element(t *tag) error {
	if w.opts.IDs {
		if err := w.ids(t); err != nil {
			return err
		}
	}
	switch t.element {
	case elemAnchor:
		return w.hyperlink(t, Anchor)
	case elemFrame:
		return w.resource(Frame, t.get(attrSrc))
	case elemMedia:
		// The order is that of importance, not that of the attributes in the tag.
		for _, a := range []attr{attrSrc, attrData, attrPoster} {
			if err := w.resource(Resource, t.get(a)); err != nil {
				return err
			}
		}
		return w.srcset(t.get(attrSrcset))
	case elemGraphic:
		return w.resource(Resource, t.get(t.hrefAttr()))
	case elemInput:
		return w.input(t)
	case elemLink:
		return w.link(t)
	case elemMeta:
		return w.meta(t)
	case elemBase:
		w.rebase(t)
	case elemTitle, elemStyle:
		return w.asked(t)
	}
	return nil
}

// asked yields what Scan adds to Links.
func (w *walker) asked(t *tag) error {
	switch {
	case t.element == elemTitle && w.opts.Meta && !w.titled:
		w.titled = true
		return w.note(Link{Kind: Title, Text: titleText(w.decoder.convert(nil, w.scan.content))})
	case t.element == elemStyle && w.opts.Styles:
		return w.styles(w.decoder.convert(nil, w.scan.content))
	}
	return nil
}

// ids yields the id of an element, and the name of an anchor, which is an older form of it.
func (w *walker) ids(t *tag) error {
	id := t.get(attrID)
	if len(id) > 0 {
		if err := w.note(Link{Kind: ID, Text: w.strings.add(id)}); err != nil {
			return err
		}
	}
	if name := t.get(attrName); t.element == elemAnchor && len(name) > 0 && !bytes.Equal(name, id) {
		return w.note(Link{Kind: ID, Text: w.strings.add(name)})
	}
	return nil
}

// maxTitle is longer than any useful title.
const maxTitle = 1 << 10

// titleText returns a title as browsers show it: with its references resolved, on one line.
func titleText(content []byte) string {
	if len(content) > maxTitle {
		end := maxTitle
		for end > maxTitle-utf8.UTFMax && !utf8.RuneStart(content[end]) {
			end-- // not in the middle of a character
		}
		content = content[:end]
	}
	text := html.UnescapeString(string(content))
	return strings.Join(strings.Fields(text), " ")
}

// hyperlink yields the tag's href. An empty one means the page itself.
func (w *walker) hyperlink(t *tag, kind Kind) error {
	href := t.hrefAttr()
	if !t.has(href) {
		return nil
	}
	l := Link{Kind: kind}
	if t.present != 1<<href { // most anchors have no other interesting attribute
		l.Rel = w.lowered(t.get(attrRel))
		l.NoFollow = hasToken(l.Rel, "nofollow")
		l.Lang = w.lowered(t.get(attrHreflang))
	}
	// The type of an anchor is not reliable enough for a crawler.
	if t.element == elemLink {
		l.Type = w.lowered(t.get(attrType))
	}
	return w.emit(l, t.value[href])
}

// input yields the image of a button.
func (w *walker) input(t *tag) error {
	if equalFold(t.get(attrType), "image") {
		return w.resource(Resource, t.get(attrSrc))
	}
	return nil
}

// resource yields the URL in value. An empty value loads nothing.
func (w *walker) resource(kind Kind, value []byte) error {
	if value = trimmed(value); len(value) > 0 {
		return w.emit(Link{Kind: kind}, value)
	}
	return nil
}

// srcset yields the URLs in value. A browser loads one of them, depending on its screen, so an
// archive needs all.
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

// link yields the target of a link element. One that preloads an image may have its URLs in
// imagesrcset only.
func (w *walker) link(t *tag) error {
	kind := relKind(w.lowered(t.get(attrRel)))
	if kind == 0 {
		return nil
	}
	if len(trimmed(t.get(attrHref))) > 0 {
		if err := w.hyperlink(t, kind); err != nil {
			return err
		}
	}
	return w.srcset(t.get(attrImagesrcset))
}

// meta yields a redirect, a directive, or what else has a name if Scan is asked for it.
func (w *walker) meta(t *tag) error {
	content := t.get(attrContent)
	if equalFold(t.get(attrHTTPEquiv), "refresh") {
		if url := refreshURL(content); len(url) > 0 {
			return w.emit(Link{Kind: Redirect}, url)
		}
		return nil
	}
	kind, name := Directive, trimmed(t.get(attrName))
	if len(name) == 0 || !equalFold(name, "robots") && !isDirective(content) {
		if kind = Meta; !w.opts.Meta {
			return nil
		}
		if len(name) == 0 {
			name = trimmed(t.get(attrProperty))
		}
		if len(name) == 0 {
			return nil
		}
	}
	text := w.strings.add(trimmed(content))
	return w.note(Link{Kind: kind, Name: w.lowered(name), Text: text})
}

// rebase applies a base element. Only the first one with an href counts, even if its href is
// unusable, and none in a template.
func (w *walker) rebase(t *tag) {
	if w.based || w.scan.hidden > 0 || !t.has(attrHref) {
		return
	}
	w.based = true
	href := trimmed(t.get(attrHref))
	if len(href) > MaxURL {
		return
	}
	// A base with another scheme would leave out every link of the page; browsers ignore
	// javascript: and data: here as well.
	base := w.refs.Base()
	u, err := weburl.ParseEncoded(string(href), &base, w.refs.Encoder)
	if err != nil || !weburl.IsWeb(&u) {
		return
	}
	if w.buf = u.Append(w.buf[:0], false); len(w.buf) <= MaxURL {
		w.refs.Reset(u)
	}
}

// emit resolves raw to an absolute URL and yields l with it.
func (w *walker) emit(l Link, raw []byte) error {
	raw = trimmed(raw)
	if len(raw) > 0 && raw[0] == '#' && !w.based && !w.opts.IDs {
		return nil
	}
	// Charge first: a link that is left out costs work, too.
	if len(raw) > MaxURL {
		return w.charge(0)
	}
	var ok bool
	w.buf, ok = w.refs.Append(w.buf[:0], raw)
	if err := w.charge(len(w.buf)); err != nil || !ok || len(w.buf) > MaxURL {
		return err
	}
	l.URL = w.strings.add(w.buf)
	if w.opts.IDs {
		w.buf = appendFragment(w.buf[:0], raw)
		if w.room -= len(w.buf); w.room < 0 {
			return ErrTooManyLinks
		}
		l.Fragment = w.strings.add(w.buf)
	}
	return w.pass(l)
}

// charge counts a link, and the bytes of its URL.
func (w *walker) charge(bytes int) error {
	w.left--
	if w.room -= bytes; w.left < 0 || w.room < 0 {
		return ErrTooManyLinks
	}
	return nil
}

// note yields a link without a URL.
func (w *walker) note(l Link) error {
	if err := w.charge(0); err != nil {
		return err
	}
	return w.pass(l)
}

func (w *walker) pass(l Link) error {
	if !w.yield(l, nil) {
		return errStop
	}
	return nil
}
