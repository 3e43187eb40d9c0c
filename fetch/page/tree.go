package page

import (
	"bytes"

	"golang.org/x/net/html"
)

// tree tracks where in the page the scanner is, if that changes the meaning of a tag: in SVG or
// MathML, in HTML within one of them, or in a frameset. These are the rules of the HTML standard's
// tree construction (13.2.6) that change which elements a page has, without the tree.
//
// As long as the foreign content is well-formed, only the foreign elements are tracked, and the
// rest of the page costs nothing. Malformed content (an end tag of something outside, or HTML
// within an integration point) needs the whole stack of open elements. Then the page is read once
// more up to that point, and from there on all tags are tracked: two passes at most.
type tree struct {
	active  bool   // tags must be examined: there are open elements, or a frameset
	tracked bool   // open has all elements, not only those from the outermost foreign one on
	open    []node // the stack of open elements, without html, head and body
	frames  int    // open framesets; -1 after the last one
	content bool   // something was shown, so a frameset comes too late
}

// maxOpen bounds the stack of open elements, as browsers do.
const maxOpen = 512

// space is a namespace.
type space uint8

const (
	spaceHTML space = iota
	spaceSVG
	spaceMath
)

// node is an open element.
type node struct {
	name  []byte // as written
	space space
	html  htmlClass
	point bool // start tags within it are HTML: an HTML or MathML text integration point
	scope bool // it ends a scope
}

func (n *node) is(name string) bool {
	return len(n.name) == len(name) && bytes.EqualFold(n.name, []byte(name))
}

// takesHTML reports whether a start tag of the name within n is an HTML element.
func (n *node) takesHTML(name []byte) bool {
	switch {
	case n.space == spaceMath && n.is("annotation-xml") && equalFold(name, "svg"):
		return true
	case n.space == spaceMath && n.point && !n.is("annotation-xml"):
		return !equalFold(name, "mglyph") && !equalFold(name, "malignmark")
	}
	return n.space == spaceHTML || n.point
}

// foreign reports whether the innermost open element is SVG or MathML.
func (t *tree) foreign() bool {
	return len(t.open) > 0 && t.open[len(t.open)-1].space != spaceHTML
}

func (t *tree) push(n node) {
	if len(t.open) < maxOpen {
		t.open = append(t.open, n)
	}
	t.active = true
}

// cut closes all elements from the ith on.
func (t *tree) cut(i int) {
	t.open = t.open[:i]
	t.active = t.tracked || len(t.open) > 0
}

// treeTag reads the start tag whose name started at start, if it may not be plain HTML.
func (s *scanner) treeTag(start int, name []byte, class nameClass) (found, ok bool) {
	t := &s.tree
	if t.frames != 0 {
		return s.frameTag(name, class)
	}
	inForeign := t.foreign() && !t.open[len(t.open)-1].takesHTML(name)
	if inForeign && !s.breaksOut(name) {
		return s.foreignTag(name)
	}
	if inForeign {
		t.leaveForeign()
	}
	if len(t.open) > 0 && !t.tracked {
		if s.track(start); inForeign {
			t.leaveForeign()
		}
	}
	switch {
	case equalFold(name, "svg"), equalFold(name, "math"):
		if ok = s.skipAttributes(); ok && !s.selfClosing() {
			n := node{name: name, space: spaceSVG}
			if len(name) == len("math") {
				n.space = spaceMath
			}
			t.push(n)
		}
		return false, ok
	case equalFold(name, "frameset"):
		if !t.content {
			s.track(start) // for the texts
		}
		if ok = s.skipAttributes(); ok && !t.content && !t.inTemplate() {
			t.open, t.frames = t.open[:0], 1
		}
		t.content = true
		return false, ok
	}
	if t.tracked {
		t.start(name, s)
	}
	return s.htmlTag(name, class)
}

// foreignTag reads the rest of the tag of an element in the open namespace.
func (s *scanner) foreignTag(name []byte) (found, ok bool) {
	n := node{name: name, space: s.tree.open[len(s.tree.open)-1].space}
	e := elemNone
	if n.space == spaceSVG {
		e = n.graphic()
	} else {
		n.math(s)
	}
	if found = e != elemNone; found {
		ok = s.attributes(e, true)
	} else {
		ok = s.skipAttributes()
	}
	if ok && !s.selfClosing() {
		s.tree.push(n)
	}
	return found, ok
}

// graphic returns the meaning of an SVG element, and turns n into one.
func (n *node) graphic() element {
	switch {
	case n.is("a"):
		return elemAnchor
	case n.is("image"), n.is("use"), n.is("feimage"), n.is("script"):
		return elemGraphic
	case n.is("foreignobject"), n.is("desc"), n.is("title"):
		n.point, n.scope = true, true
	}
	return elemNone
}

// math turns n into a MathML element.
func (n *node) math(s *scanner) {
	switch {
	case n.is("mi"), n.is("mo"), n.is("mn"), n.is("ms"), n.is("mtext"):
		n.point, n.scope = true, true
	case n.is("annotation-xml"):
		encoding, _ := s.attribute("encoding")
		encoding = s.decoded(encoding)
		n.scope = true
		n.point = bytes.EqualFold(encoding, []byte("text/html")) ||
			bytes.EqualFold(encoding, []byte("application/xhtml+xml"))
	}
}

// breaksOut reports whether an HTML tag ends all foreign elements around it: the author cannot have
// meant it to be SVG.
func (s *scanner) breaksOut(name []byte) bool {
	if equalFold(name, "font") {
		_, ok := s.attribute("color", "face", "size")
		return ok
	}
	return classOfHTML(name)&breakout != 0
}

// leaveForeign closes foreign elements up to HTML or an integration point.
func (t *tree) leaveForeign() {
	i := len(t.open)
	for i > 0 && t.open[i-1].space != spaceHTML && !t.open[i-1].point {
		i--
	}
	t.cut(i)
}

// treeEnd closes the elements that the end tag closes whose name started at start.
func (s *scanner) treeEnd(start int, name []byte) {
	t := &s.tree
	if t.frames != 0 {
		if t.frames > 0 && equalFold(name, "frameset") {
			if t.frames--; t.frames == 0 {
				t.frames = -1
			}
		}
		return
	}
	if t.foreign() {
		for i := len(t.open) - 1; i >= 0; i-- {
			if bytes.EqualFold(t.open[i].name, name) {
				t.cut(i)
				return
			}
			if i > 0 && t.open[i-1].space == spaceHTML {
				break
			}
		}
		if !t.tracked {
			s.track(start)
		}
	}
	t.end(name)
}

// track determines which elements are open before the tag whose name started at start.
func (s *scanner) track(start int) {
	end := start - len("<")
	if s.page[end] == '/' {
		end--
	}
	past := scanner{page: s.page[:end], xml: s.xml, decoder: s.decoder}
	past.tree = tree{active: true, tracked: true}
	past.text = func(piece []byte) {
		if len(bytes.Trim([]byte(html.UnescapeString(string(piece))), whitespace+"\x00")) > 0 {
			past.tree.content = true
		}
	}
	for past.next() {
	}
	s.tree = past.tree
}

// frameTag reads the start tag of a page of frames, where only frames and their fallback count.
func (s *scanner) frameTag(name []byte, class nameClass) (found, ok bool) {
	t := &s.tree
	switch {
	case t.frames > 0 && equalFold(name, "frame"):
		class.element = elemFrame
	case equalFold(name, "noframes"):
	case t.frames > 0 && equalFold(name, "frameset"):
		t.frames++
		class.element = elemNone
	case equalFold(name, "noscript"):
		class = nameClass{raw: true}
	default:
		class.element = elemNone
	}
	return s.htmlTag(name, class)
}
