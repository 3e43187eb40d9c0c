package replay

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// In SVG and MathML a style or a title is an ordinary element, which may contain tags. The
// tokenizer does not know that. Open elements are tracked only roughly: a mistake only affects the
// look of a page that is already broken, since the output is plain in any case.

// breakouts are the HTML elements that end SVG and MathML, by the HTML standard (13.2.6.5).
var breakouts = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(`b big blockquote body br center code dd div dl dt em embed
		h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small span strong
		strike sub sup table tt u ul var`) {
		set[name] = true
	}
	return set
}()

// isForeignRoot reports whether an element starts SVG or MathML.
func isForeignRoot(name string) bool { return name == "svg" || name == "math" }

// isIntegration reports whether an element of SVG or MathML contains HTML again.
func isIntegration(name string) bool {
	switch name {
	case "foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext":
		return true
	}
	return false
}

// foreignElements are the open elements of SVG and MathML, and those of HTML in them. It is not safe
// for concurrent use.
type foreignElements []string

// inside reports whether the next tag belongs to SVG or MathML.
func (f foreignElements) inside() bool { return len(f) > 0 && !isIntegration(f[len(f)-1]) }

// inStyle reports whether a style in SVG is open. It is always the last open element, since the tags
// in it have no meaning.
func (f foreignElements) inStyle() bool { return len(f) > 0 && f[len(f)-1] == "style" }

// rawElements are the elements whose text contains no tags.
var rawElements = map[string]bool{"script": true, "style": true, "xmp": true, "iframe": true,
	"noembed": true, "noframes": true, "plaintext": true, "title": true, "textarea": true}

// start is called with each start tag. It returns whether the text of the element contains no tags,
// and whether the element is in a style of SVG.
func (f *foreignElements) start(z *html.Tokenizer, name string, attrs []attribute,
	selfClosing bool) (raw, inStyle bool) {
	f.leave(name, attrs)
	raw = rawElements[name]
	if f.inside() && (name != "script" || selfClosing) || name == "noscript" {
		// There they are ordinary elements; and without scripts a page shows its noscript. Even if
		// a browser treats that as text, nothing in it ends the text early: every "<" in values is
		// escaped.
		z.NextIsNotRawText()
		raw = false
	}
	inStyle = f.inStyle()
	if !selfClosing && !raw && !inStyle && len(*f) < maxForeign && (isForeignRoot(name) ||
		f.inside() && (isIntegration(name) || name == "style")) {
		*f = append(*f, name)
	}
	return raw, inStyle
}

// leave closes the elements that a start tag of HTML ends.
func (f *foreignElements) leave(name string, attrs []attribute) {
	font := name == "font" && (has(attrs, "color") || has(attrs, "face") || has(attrs, "size"))
	for (breakouts[name] || font) && f.inside() {
		*f = (*f)[:len(*f)-1]
	}
}

// maxForeign bounds the open elements of SVG and MathML, since each end tag searches them.
const maxForeign = 100

// end is called with each end tag.
func (f *foreignElements) end(name string) {
	for i, open := range slices.Backward(*f) {
		if open == name {
			*f = (*f)[:i]
			return
		}
	}
}
