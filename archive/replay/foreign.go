package replay

import (
	"slices"
	"strings"
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

// inForeign reports whether the next tag belongs to SVG or MathML.
func (p *pageRewriter) inForeign() bool {
	return len(p.foreign) > 0 && !isIntegration(p.foreign[len(p.foreign)-1])
}

// leaveForeign is called with each start tag before it is processed.
func (p *pageRewriter) leaveForeign(name string, attrs []attribute) {
	font := name == "font" && (has(attrs, "color") || has(attrs, "face") || has(attrs, "size"))
	if !breakouts[name] && !font {
		return
	}
	n := len(p.foreign)
	for n > 0 && !isIntegration(p.foreign[n-1]) {
		n--
	}
	p.cutForeign(n)
}

// cutForeign closes all but the first n open elements. It writes the end tag of a style, so that
// parsers without SVG find its end in the right place.
func (p *pageRewriter) cutForeign(n int) {
	if p.inForeignStyle() && n < len(p.foreign) {
		p.out.WriteString("</style>")
	}
	p.foreign = p.foreign[:n]
}

// inForeignStyle reports whether a style in SVG is open. It is always the last open element, since
// tags in it are dropped.
func (p *pageRewriter) inForeignStyle() bool {
	return len(p.foreign) > 0 && p.foreign[len(p.foreign)-1] == "style"
}

// maxForeign bounds the open elements of SVG and MathML, since each end tag searches them.
const maxForeign = 100

// enterForeign records an open element.
func (p *pageRewriter) enterForeign(name string, selfClosing bool) {
	if selfClosing || p.raw != "" || len(p.foreign) == maxForeign || p.inForeignStyle() {
		return
	}
	if isForeignRoot(name) || p.inForeign() && (isIntegration(name) || name == "style") {
		p.foreign = append(p.foreign, name)
	}
}

// closeForeign is called with each end tag, before it is written.
func (p *pageRewriter) closeForeign(name string) {
	for i, open := range slices.Backward(p.foreign) {
		if open == name {
			p.cutForeign(i)
			return
		}
	}
}
