package page

import "strings"

// htmlClass is what the rules for the stack of open elements need to know about an HTML element.
type htmlClass uint16

const (
	void       htmlClass = 1 << iota // it has no content and no end tag
	special                          // an end tag of something else does not close it
	scoping                          // an end tag inside it does not close anything outside
	block                            // it ends a paragraph
	closable                         // its end tag closes all within it
	implied                          // its end tag may be omitted
	heading                          //
	formatting                       // it continues after another end tag cut it short
	tabular                          // a part of a table
	breakout                         // it cannot be in SVG or MathML
	shown                            // no frameset can follow it
)

var htmlClasses = func() map[string]htmlClass {
	table := make(map[string]htmlClass)
	for class, names := range map[htmlClass]string{
		void: `area base basefont bgsound br col embed frame hr image img input keygen link
			meta param source track wbr`,
		special: `address applet area article aside base basefont bgsound blockquote body br
			button caption center col colgroup dd details dir div dl dt embed fieldset
			figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup
			hr html iframe img input keygen li link listing main marquee menu meta nav noembed
			noframes noscript object ol p param plaintext pre script search section select
			source style summary table tbody td template textarea tfoot th thead title tr
			track ul wbr xmp`,
		scoping: `applet caption html marquee object select table td template th`,
		block: `address article aside blockquote center details dialog dir div dl fieldset
			figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup listing main menu
			nav ol p plaintext pre search section summary ul xmp`,
		closable: `address article aside blockquote button center details dialog dir div dl
			fieldset figcaption figure footer header hgroup listing main menu nav ol pre
			search section select summary ul`,
		implied:    `dd dt li optgroup option p rb rp rt rtc`,
		heading:    `h1 h2 h3 h4 h5 h6`,
		formatting: `a b big code em font i nobr s small strike strong tt u`,
		tabular:    `caption col colgroup tbody td tfoot th thead tr`,
		breakout: `b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5
			h6 head hr i img li listing menu meta nobr ol p pre ruby s small span strong
			strike sub sup table tt u ul var`,
		shown: `applet area body br button dd dt embed hr iframe image img input keygen li
			listing marquee object pre select table textarea wbr xmp`,
	} {
		for name := range strings.FieldsSeq(names) {
			table[name] |= class
		}
	}
	return table
}()

// classOfHTML returns the class of the HTML element name, in any case.
func classOfHTML(name []byte) htmlClass {
	const longest = len("figcaption")
	if len(name) > longest {
		return 0
	}
	var lower [longest]byte
	for i, c := range name {
		lower[i] = lowerByte(c)
	}
	return htmlClasses[string(lower[:len(name)])]
}

// scopes end at other elements besides those that end all of them.
type scope uint8

const (
	anyScope scope = iota
	itemScope
	buttonScope
	tableScope
)

// find returns the index on the stack of the innermost HTML element that matches, or -1 if there is
// none before the end of the scope.
func (t *tree) find(within scope, matches func(n *node) bool) int {
	for i := len(t.open) - 1; i >= 0; i-- {
		n := &t.open[i]
		if n.space == spaceHTML && matches(n) {
			return i
		}
		end := n.scope
		switch within {
		case itemScope:
			end = end || n.html != 0 && (n.is("ol") || n.is("ul"))
		case buttonScope:
			end = end || n.html != 0 && n.is("button")
		case tableScope:
			end = n.html&scoping != 0 && (n.is("table") || n.is("template"))
		}
		if end {
			return -1
		}
	}
	return -1
}

func named(names ...string) func(n *node) bool {
	return func(n *node) bool {
		for _, name := range names {
			if n.is(name) {
				return true
			}
		}
		return false
	}
}

// popTo closes the innermost element with one of the names, and all within it.
func (t *tree) popTo(within scope, names ...string) bool {
	i := t.find(within, named(names...))
	if i >= 0 {
		t.cut(i)
	}
	return i >= 0
}

// popImplied closes the elements on top of the stack whose end tags may be omitted.
func (t *tree) popImplied(but string) {
	i := len(t.open)
	for i > 0 && t.open[i-1].html&implied != 0 && !t.open[i-1].is(but) {
		i--
	}
	t.cut(i)
}

// inTemplate reports whether a template is open.
func (t *tree) inTemplate() bool {
	for i := range t.open {
		if t.open[i].html != 0 && t.open[i].is("template") {
			return true
		}
	}
	return false
}

// start opens the HTML element whose start tag starts with name. It requires that all elements are
// tracked.
func (t *tree) start(name []byte, s *scanner) {
	n := node{name: name, html: classOfHTML(name)}
	n.scope = n.html&scoping != 0
	if n.html&shown != 0 && !(n.is("input") && s.isHidden()) {
		t.content = true
	}
	switch {
	case n.is("html"), n.is("head"), n.is("body"), n.is("frame"):
		return
	case n.html&tabular != 0:
		t.startTabular(n)
		return
	case n.is("table"):
		t.startTable()
	case n.is("select"):
		if t.popTo(anyScope, "select") {
			return
		}
	case n.is("input"):
		t.popTo(anyScope, "select")
	case n.is("form"):
		if s.form && !t.inTemplate() {
			return
		}
		t.popTo(buttonScope, "p")
	case n.html&block != 0:
		t.popTo(buttonScope, "p")
		top := len(t.open) - 1
		if n.html&heading != 0 && top >= 0 && t.open[top].html&heading != 0 {
			t.cut(top)
		}
	default:
		t.startOther(&n)
	}
	if n.html&void == 0 {
		t.push(n)
	}
}

// isHidden looks ahead to see whether the input whose name was just read is a hidden one.
func (s *scanner) isHidden() bool {
	value, _ := s.attribute("type")
	return equalFold(value, "hidden")
}

// startOther closes the elements that the start tag of n ends, where n is not a block.
func (t *tree) startOther(n *node) {
	switch {
	case n.is("li"):
		t.closeItem("li", "li")
	case n.is("dd"), n.is("dt"):
		t.closeItem("dd", "dt")
	case n.is("button"):
		if t.find(anyScope, named("button")) >= 0 {
			t.popImplied("")
			t.popTo(anyScope, "button")
		}
	case n.is("a"), n.is("nobr"):
		if t.find(anyScope, named(string(n.name))) >= 0 {
			t.endFormatting(n.name)
		}
	case n.is("hr"):
		t.popTo(buttonScope, "p")
		if t.find(anyScope, named("select")) >= 0 {
			t.popImplied("")
		}
	case n.is("option"), n.is("optgroup"):
		if t.find(anyScope, named("select")) >= 0 {
			but := ""
			if n.is("option") {
				but = "optgroup"
			}
			t.popImplied(but)
		} else if top := len(t.open) - 1; top >= 0 && t.open[top].is("option") {
			t.cut(top)
		}
	case n.is("rb"), n.is("rtc"), n.is("rp"), n.is("rt"):
		if t.find(anyScope, named("ruby")) >= 0 {
			but := "rtc"
			if n.is("rb") || n.is("rtc") {
				but = ""
			}
			t.popImplied(but)
		}
	}
}

// closeItem ends an item of a list before the next one begins.
func (t *tree) closeItem(one, other string) {
	for i := len(t.open) - 1; i >= 0; i-- {
		n := &t.open[i]
		if n.is(one) || n.is(other) {
			t.cut(i)
			break
		}
		if n.isSpecial() && !n.is("address") && !n.is("div") && !n.is("p") {
			break
		}
	}
	t.popTo(buttonScope, "p")
}

// isSpecial reports whether n is in the standard's category of that name.
func (n *node) isSpecial() bool {
	return n.html&special != 0 || n.space != spaceHTML && n.scope
}

// end closes the elements that the end tag of an HTML element closes. It requires that all elements
// are tracked.
func (t *tree) end(name []byte) {
	n := node{name: name, html: classOfHTML(name)}
	switch {
	case n.is("p"):
		if !t.popTo(buttonScope, "p") {
			t.leaveForeign() // as if a start tag preceded it
		}
	case n.is("br"):
		t.leaveForeign()
	case n.is("html"), n.is("body"):
	case n.html&closable != 0, n.is("applet"), n.is("marquee"), n.is("object"):
		t.popTo(anyScope, string(name))
	case n.html&heading != 0:
		t.popTo(anyScope, "h1", "h2", "h3", "h4", "h5", "h6")
	case n.is("li"):
		t.popTo(itemScope, "li")
	case n.is("dd"), n.is("dt"):
		t.popTo(anyScope, string(name))
	case n.is("form"):
		t.endForm()
	case n.is("template"):
		if t.inTemplate() {
			i := len(t.open) - 1
			for ; t.open[i].html == 0 || !t.open[i].is("template"); i-- {
			}
			t.cut(i)
		}
	case n.html&tabular != 0, n.is("table"):
		t.endTabular(&n)
	case n.html&formatting != 0:
		t.endFormatting(name)
	default:
		t.endOther(name)
	}
}

// endForm closes a form, but not the elements open within it, as the standard requires.
func (t *tree) endForm() {
	i := t.find(anyScope, named("form"))
	if i < 0 {
		return
	}
	t.popImplied("")
	if i < len(t.open) {
		t.open = append(t.open[:i], t.open[i+1:]...)
	}
}

// endOther closes the innermost element of the name, unless a special element is open in it.
func (t *tree) endOther(name []byte) {
	for i := len(t.open) - 1; i >= 0; i-- {
		n := &t.open[i]
		if n.space == spaceHTML && n.is(string(name)) {
			t.cut(i)
			return
		}
		if n.isSpecial() {
			return
		}
	}
}

// endFormatting implements the effect of the standard's adoption agency algorithm on the stack.
func (t *tree) endFormatting(name []byte) {
	i := t.find(anyScope, named(string(name)))
	if i < 0 {
		return
	}
	last := i // of the elements that stay open: the innermost that cannot be cut short
	for j := i + 1; j < len(t.open); j++ {
		if t.open[j].isSpecial() {
			last = j
		}
	}
	t.cut(last + 1)
	t.open = append(t.open[:i], t.open[i+1:]...)
	t.cut(len(t.open))
}
