package page

import "bytes"

// svg tracks whether a tag is SVG or HTML. In SVG, a title is no raw text, a tag that ends with a
// slash has no content, and links are in other attributes.
//
// It is an approximation of the HTML standard's tree construction (13.2.6) in bounded work per tag.
// It remembers the borders between HTML and SVG and none of the elements between them, so it sees
// the same links as a browser if every border that opens is closed. If not, SVG ends at the next
// tag that cannot be in it. MathML is read as HTML: it has no such elements and no links.
type svg struct {
	open  [maxBorders]border // innermost last
	depth int
	title bool // an HTML title within SVG is open
	code  bool // a style or a script of SVG is open, whose content is markup and not shown
}

// maxBorders bounds how deeply SVG and HTML are nested in each other. Further borders are ignored.
const maxBorders = 16

// border is an element whose content follows other rules than what is around it.
type border uint8

const (
	noBorder     border = iota
	borderSVG           // SVG begins
	borderObject        // in SVG: HTML begins, as in the following ones
	borderDesc
	borderTitle
)

// borderOf returns the border that an element with a name in lower case is in SVG, if any.
func borderOf(name string) border {
	switch name {
	case "svg":
		return borderSVG
	case "foreignobject":
		return borderObject
	case "desc":
		return borderDesc
	case "title":
		return borderTitle
	}
	return noBorder
}

// inside reports whether a tag is SVG.
func (v *svg) inside() bool { return v.depth > 0 && v.open[v.depth-1] == borderSVG }

func (v *svg) enter(b border) {
	if b != noBorder && v.depth < maxBorders {
		v.open[v.depth] = b
		v.depth++
	}
}

// close leaves the innermost b and all within it.
func (v *svg) close(b border) {
	for i := v.depth - 1; i >= 0; i-- {
		if v.open[i] == b {
			v.depth, v.code = i, false
			return
		}
	}
}

// breakOut leaves SVG for the HTML around it.
func (v *svg) breakOut() {
	for v.inside() {
		v.depth--
	}
	v.code = false
}

// svgTag reads the rest of a tag that is SVG, or begins some, or is HTML within it.
func (s *scanner) svgTag(name []byte, class nameClass) (found, ok bool) {
	var lower [longestSVG]byte
	word := string(appendLower(lower[:0], name))
	if s.svg.inside() && cannotBeSVG[word] {
		s.svg.breakOut()
	}
	if !s.svg.inside() && word != "svg" {
		s.svg.title = word == "title"
		return s.htmlTag(name, class)
	}
	e := elemNone
	switch word {
	case "a":
		e = elemAnchor
	case "image", "use", "feimage", "script":
		e = elemGraphic
	}
	if found = e != elemNone || s.ids; found {
		ok = s.attributes(e, true)
	} else {
		ok = s.skipAttributes()
	}
	if ok && !s.selfClosing() {
		s.svg.enter(borderOf(word))
		s.svg.code = s.svg.code || isCode(word)
	}
	return found, ok
}

// svgEnd closes what the end tag of the name ends.
func (s *scanner) svgEnd(name []byte) {
	var lower [longestSVG]byte
	word := string(appendLower(lower[:0], name))
	if word == "title" && s.svg.title {
		s.svg.title = false
		return
	}
	if b := borderOf(word); b != noBorder {
		s.svg.close(b)
	} else if isCode(word) {
		s.svg.code = false
	} else if cannotBeSVG[word] { // an element around the SVG ends, which was not closed
		s.svg.breakOut()
	}
}

func isCode(name string) bool { return name == "style" || name == "script" }

// longestSVG is longer than any name that matters here.
const longestSVG = 16

// cannotBeSVG has the names of HTML elements that end SVG: its author has forgotten to close it.
var cannotBeSVG = func() map[string]bool {
	names := make(map[string]bool)
	for name := range bytes.FieldsSeq([]byte(`b big blockquote body br center code dd div dl dt em embed h1 h2
		h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small span strong strike
		sub sup table tt u ul var`)) {
		names[string(name)] = true
	}
	return names
}()
