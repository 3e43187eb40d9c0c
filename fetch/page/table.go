package page

// startTable closes the elements that cannot contain the table whose start tag was just read.
func (t *tree) startTable() {
	// Between the parts of a table, no table can start: the outer one ends.
	for i := t.inner(); i >= 0; i = t.inner() {
		in := &t.open[i]
		if in.is("td") || in.is("th") || in.is("caption") || !t.popTo(tableScope, "table") {
			break
		}
	}
	t.popTo(buttonScope, "p")
}

// inner returns the index on the stack of the innermost table part, table or template, in place of
// the insertion mode. -1 means that there is none.
func (t *tree) inner() int {
	for i := len(t.open) - 1; i >= 0; i-- {
		n := &t.open[i]
		if n.html&tabular != 0 || n.html&scoping != 0 && (n.is("table") || n.is("template")) {
			return i
		}
	}
	return -1
}

// startTabular opens a part of a table and the omitted parts around it. Outside of a table the tag
// is ignored.
func (t *tree) startTabular(n node) {
	for {
		i := t.inner()
		if i < 0 {
			return
		}
		in := &t.open[i]
		cell := n.is("td") || n.is("th")
		row := n.is("tr")
		switch {
		case in.is("td"), in.is("th"), in.is("caption"):
			if in.is("caption") && n.is("th") {
				return // like package html, which overlooks this case
			}
			t.cut(i)
			continue
		case in.is("tr"):
			if !cell {
				t.cut(i)
				continue
			}
		case in.is("tbody"), in.is("thead"), in.is("tfoot"):
			if cell {
				t.cut(i + 1)
				t.pushNamed("tr")
				continue
			}
			if !row {
				t.cut(i)
				continue
			}
		case in.is("colgroup"):
			if n.is("col") {
				return
			}
			t.cut(i)
			continue
		case in.is("table"):
			if cell || row {
				t.cut(i + 1)
				t.pushNamed("tbody")
				continue
			}
			if n.is("col") {
				t.cut(i + 1)
				t.pushNamed("colgroup")
				return
			}
		}
		t.cut(i + 1)
		if !n.is("col") {
			t.push(n)
		}
		return
	}
}

func (t *tree) pushNamed(name string) {
	n := node{name: []byte(name)}
	n.html = classOfHTML(n.name)
	n.scope = n.html&scoping != 0
	t.push(n)
}

// endTabular closes a table or a part of one.
func (t *tree) endTabular(n *node) {
	i := t.find(tableScope, named(string(n.name)))
	if i < 0 || n.is("col") {
		return
	}
	t.cut(i)
}
