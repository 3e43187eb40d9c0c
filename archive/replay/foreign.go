package replay

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// In SVG and MathML a style or a title is an ordinary element, which may contain tags. The
// tokenizer does not know that. Open elements are tracked only roughly: a mistake only affects the
// look of a page that is already broken, since the output is plain in any case.

// setOf returns a set of names separated by spaces.
func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// breakouts are the HTML elements that end SVG and MathML, by the HTML standard (13.2.6.5).
var breakouts = setOf(`b big blockquote body br center code dd div dl dt em embed
	h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small span strong
	strike sub sup table tt u ul var`)

// isForeignRoot reports whether an element starts SVG or MathML.
func isForeignRoot(name string) bool { return name == "svg" || name == "math" }

// isIsland reports whether an element of SVG or MathML contains HTML again.
func isIsland(space, name string, attrs []attribute) bool {
	switch name {
	case "foreignobject", "desc", "title":
		return space == "svg"
	case "mi", "mo", "mn", "ms", "mtext":
		return space == "math"
	case "annotation-xml":
		encoding := strings.ToLower(value(attrs, "encoding"))
		return space == "math" && (encoding == "text/html" || encoding == "application/xhtml+xml")
	}
	return false
}

// containers are the elements of HTML that only their end tags close. In one, the end tags of what is
// around an island have no meaning.
var containers = setOf(`address article aside blockquote center details dialog dir div
	dl fieldset figcaption figure footer header hgroup listing main menu nav ol pre search section
	summary table ul`)

// foreignElement is an open element of SVG or MathML, or a container in an island of HTML.
type foreignElement struct {
	name, space string // "svg", "math", or "" for HTML
	island      bool   // it contains HTML
}

// foreignElements are the open elements of SVG and MathML, and those of HTML in them. It is not safe
// for concurrent use.
type foreignElements []foreignElement

// inside reports whether the next tag belongs to SVG or MathML.
func (f foreignElements) inside() bool { return len(f) > 0 && !f[len(f)-1].island }

// inStyle reports whether a style in SVG or MathML is open. It is always the last open element, since
// the tags in it have no meaning.
func (f foreignElements) inStyle() bool { return len(f) > 0 && f[len(f)-1].name == "style" }

// hidesText reports whether the next text is a style. In MathML it is shown.
func (f foreignElements) hidesText() bool { return f.inStyle() && f[len(f)-1].space == "svg" }

// rawElements are the elements whose text contains no tags.
var rawElements = setOf(`script style xmp iframe noembed noframes plaintext title textarea`)

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
	if !selfClosing && !raw && !inStyle && len(*f) < maxForeign {
		f.open(name, attrs)
	}
	return raw, inStyle
}

// open adds an element, if it matters.
func (f *foreignElements) open(name string, attrs []attribute) {
	inside := f.inside()
	space := ""
	if inside {
		space = (*f)[len(*f)-1].space
	}
	root := isForeignRoot(name)
	switch {
	case root && (!inside || name == "svg" && (*f)[len(*f)-1].name == "annotation-xml"):
		*f = append(*f, foreignElement{name: name, space: name})
	case inside && (root || name == "style" || name == "template" || name == "annotation-xml" || isIsland(space, name, attrs)):
		*f = append(*f, foreignElement{name, space, isIsland(space, name, attrs)})
	case !inside && len(*f) > 0 && containers[name]:
		*f = append(*f, foreignElement{name: name, island: true})
	}
}

// leave closes the elements that a start tag of HTML ends.
func (f *foreignElements) leave(name string, attrs []attribute) {
	font := name == "font" && (has(attrs, "color") || has(attrs, "face") || has(attrs, "size"))
	if breakouts[name] || font {
		f.breakOut()
	}
}

// breakOut closes the elements up to the next of HTML.
func (f *foreignElements) breakOut() {
	for f.inside() {
		*f = (*f)[:len(*f)-1]
	}
}

// maxForeign bounds the open elements of SVG and MathML, since each end tag searches them.
const maxForeign = 100

// end is called with each end tag.
func (f *foreignElements) end(name string) {
	if name == "p" || name == "br" {
		f.breakOut()
	}
	for i, open := range slices.Backward(*f) {
		switch html := open.space == ""; {
		case open.name == name:
			*f = (*f)[:i]
			return
		case html != containers[name]:
			return // it has no meaning here
		}
	}
}
