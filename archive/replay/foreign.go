package replay

import (
	"slices"
	"strings"
)

// In SVG and MathML a style or a title is an element like others, in which tags are tags. The
// tokenizer has to be told. Which elements are open there is followed only roughly: a mistake costs
// the look of a page that is broken already, and no more, as what is written is plain either way.

// breakouts are the elements of HTML that end SVG and MathML where they stand, by the HTML standard
// (13.2.6.5).
var breakouts = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(`b big blockquote body br center code dd div dl dt em embed
		h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small span strong
		strike sub sup table tt u ul var`) {
		set[name] = true
	}
	return set
}()

// isForeignRoot tells what begins SVG and MathML.
func isForeignRoot(name string) bool { return name == "svg" || name == "math" }

// isIntegration tells in which elements of SVG and MathML there is HTML again.
func isIntegration(name string) bool {
	switch name {
	case "foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext":
		return true
	}
	return false
}

// inForeign tells whether the next tag belongs to SVG or MathML.
func (p *pageRewriter) inForeign() bool {
	return len(p.foreign) > 0 && !isIntegration(p.foreign[len(p.foreign)-1])
}

// leaveForeign is called with each start tag before it is looked at.
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

// cutForeign closes all but the first n of what is open. A style is closed in writing, so that
// readers that do not know of SVG see its end where it is.
func (p *pageRewriter) cutForeign(n int) {
	if p.inForeignStyle() && n < len(p.foreign) {
		p.out.WriteString("</style>")
	}
	p.foreign = p.foreign[:n]
}

// inForeignStyle tells whether a style in SVG is open. It is always the last of what is open, as
// tags in it are left out.
func (p *pageRewriter) inForeignStyle() bool {
	return len(p.foreign) > 0 && p.foreign[len(p.foreign)-1] == "style"
}

// maxForeign is how many elements of SVG and MathML may be open: each end tag looks through them.
const maxForeign = 100

// enterForeign notes what is open.
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
