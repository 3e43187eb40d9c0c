package page

import (
	"bytes"
	"unicode/utf8"
)

// scanner finds the start tags of a page, and nothing else of it. It reads the page as the
// tokenizer of golang.org/x/net/html does, state by state, so that the tags are the same ones. It
// is faster because it copies nothing and because most bytes of a page are of no interest: texts,
// and the attributes of most tags, are searched for their end and not looked at.
//
// What a tag means depends on where it is. While no SVG, MathML or frameset is open, that needs no
// tree. tree.go decides the rest, with the rules for open HTML elements in stack.go and table.go.
type scanner struct {
	page []byte
	pos  int
	tag  tag
	buf  []byte // for values of the tag that are not written as they are meant

	xml     bool               // a tag that ends with a slash has no content, in XHTML
	decoder *decoder           // for values that are not ASCII; nil leaves them as they are
	content []byte             // of the last element whose content is text
	text    func(piece []byte) // called with the texts between tags; nil if nobody wants them
	form    bool               // a form is open, and those within it do not count
	tree    tree
}

// next moves on to the next start tag that can have links, and reports whether there is one.
func (s *scanner) next() bool {
	for {
		i := bytes.IndexByte(s.page[s.pos:], '<')
		if s.text != nil {
			s.piece(i)
		}
		if i < 0 || s.pos+i+1 == len(s.page) {
			return false
		}
		s.pos += i + 1
		// A bracket that begins none of these is text, such as that of "1 < 2".
		switch c := s.page[s.pos]; {
		case isAlpha(c):
			if found, ok := s.startTag(); found || !ok {
				return found && ok
			}
		case c == '/':
			if !s.endTag() {
				return false
			}
		case c == '!':
			if !s.declaration() {
				return false
			}
		case c == '?':
			// What XML and PHP put there is a comment to HTML. It has no quotes that could hide
			// its end.
			if !s.skipPast('>') {
				return false
			}
		}
	}
}

// piece hands the next n bytes out, or all that are left if n is negative, if they are a text.
func (s *scanner) piece(n int) {
	text := s.page[s.pos:]
	if n >= 0 {
		text = text[:n]
	}
	if len(trimmed(text)) == 0 {
		return
	}
	if s.decoder != nil {
		text = s.decoder.text(text)
	}
	s.text(text)
}

// skipPast moves behind the next c, and reports whether there is one.
func (s *scanner) skipPast(c byte) bool {
	i := bytes.IndexByte(s.page[s.pos:], c)
	s.pos += i + 1
	return i >= 0
}

// startTag reads the tag whose name begins here. found says that it is of interest, and ok that
// the page has not ended within it: such a tag is none.
func (s *scanner) startTag() (found, ok bool) {
	start := s.pos
	name := s.name()
	class := classOf(name)
	if s.tree.active || class.tree {
		return s.treeTag(start, name, class)
	}
	return s.htmlTag(name, class)
}

// htmlTag reads the rest of the tag of an HTML element, and its content if that is text.
func (s *scanner) htmlTag(name []byte, class nameClass) (found, ok bool) {
	if found = class.element != elemNone; found {
		ok = s.attributes(class.element, false)
	} else {
		ok = s.skipAttributes()
	}
	// A slash at the end of the tag changes nothing: in HTML <script/> is not closed.
	if ok && class.raw && !(s.xml && s.selfClosing()) {
		s.rawText(name)
	}
	if class.element == elemForm && len(name) == len("form") {
		found = found && !s.form
		s.form = true
	}
	return found, ok
}

// selfClosing reports whether the tag that was read ends with a slash, like the tokenizer even if
// the slash belongs to a value without quotes.
func (s *scanner) selfClosing() bool { return s.page[s.pos-2] == '/' }

// endTag skips the rest of a tag that begins with "</". Its attributes count for nothing, but
// their quotes hide angle brackets.
func (s *scanner) endTag() bool {
	s.pos++
	switch {
	case s.pos == len(s.page):
		return false
	case isAlpha(s.page[s.pos]):
		start := s.pos
		name := s.name()
		if !s.skipAttributes() {
			return false
		}
		if s.tree.active {
			s.treeEnd(start, name)
		}
		if s.form && equalFold(name, "form") {
			s.form = false
		}
		return true
	}
	return s.skipPast('>')
}

// name returns the name of the tag that begins here, as it is written.
func (s *scanner) name() []byte {
	start := s.pos
	for s.pos < len(s.page) && marks[s.page[s.pos]]&endsName == 0 {
		s.pos++
	}
	return s.page[start:s.pos]
}

// declaration skips what begins with "<!": a comment, a CDATA section where there can be one, or
// else up to the next angle bracket.
func (s *scanner) declaration() bool {
	s.pos++
	rest := s.page[s.pos:]
	if bytes.HasPrefix(rest, []byte("[CDATA[")) && (s.xml || s.tree.foreign()) {
		s.pos += len("[CDATA[")
		end := bytes.Index(s.page[s.pos:], []byte("]]>"))
		if s.text != nil {
			s.piece(end)
		}
		s.pos += end + len("]]>")
		return end >= 0
	}
	if !bytes.HasPrefix(rest, []byte("--")) {
		return s.skipPast('>')
	}
	s.pos += len("--")
	start := s.pos
	for s.skipPast('>') {
		// "<!-->" and "<!--->" are comments that somebody meant to be empty.
		text := s.page[start : s.pos-1]
		if len(text) == 0 || len(text) == 1 && text[0] == '-' ||
			bytes.HasSuffix(text, []byte("--")) || bytes.HasSuffix(text, []byte("--!")) {
			return true
		}
	}
	return false
}

// skipAttributes moves behind the tag, and reports whether it has an end.
//
// Only what follows an equals sign can hide an angle bracket. One that a name could begin with is
// left to skipAttribute, which knows the states of the tokenizer.
func (s *scanner) skipAttributes() bool {
	for begin := s.pos; ; begin = s.pos {
		for s.pos < len(s.page) && marks[s.page[s.pos]]&mayHide == 0 {
			s.pos++
		}
		switch {
		case s.pos == len(s.page):
			return false
		case s.page[s.pos] == '>':
			s.pos++
			return true
		case s.pos == begin || marks[s.page[s.pos-1]]&endsName != 0:
			if s.pos = begin; !s.skipAttribute() {
				return false
			}
			continue
		}
		s.pos++
		if s.skipSpace(); s.pos == len(s.page) {
			return false
		}
		if s.page[s.pos] != '>' {
			s.value()
		}
	}
}

// skipAttribute moves behind an attribute, or what is left of the tag without one. It reports
// whether the page goes on.
func (s *scanner) skipAttribute() bool {
	if s.skipSpace(); s.pos < len(s.page) && s.page[s.pos] != '>' {
		s.key()
		if s.beforeValue() {
			s.value()
		}
	}
	return s.pos < len(s.page)
}

// attributes reads the attributes of an element, moves behind the tag, and reports whether it has
// an end.
func (s *scanner) attributes(e element, foreign bool) bool {
	s.tag.element, s.tag.foreign, s.tag.present = e, foreign, 0
	s.buf = s.buf[:0]
	for {
		if s.skipSpace(); s.pos == len(s.page) {
			return false
		}
		if s.page[s.pos] == '>' {
			s.pos++
			return true
		}
		key := s.key()
		var value []byte
		if s.beforeValue() {
			value = s.value()
		}
		// Of two attributes with one name, the first one counts.
		if a := attrOf(key); a < attrCount && !s.tag.has(a) {
			if !isPlain(value) {
				value = s.decoded(value)
			}
			s.tag.value[a] = value
			s.tag.present |= 1 << a
		}
	}
}

// attribute looks ahead for an attribute of the tag that begins here, of any of the names.
func (s *scanner) attribute(names ...string) (value []byte, ok bool) {
	defer func(pos int) { s.pos = pos }(s.pos)
	for {
		if s.skipSpace(); s.pos == len(s.page) || s.page[s.pos] == '>' {
			return nil, false
		}
		key := s.key()
		value = nil
		if s.beforeValue() {
			value = s.value()
		}
		for _, name := range names {
			if len(key) == len(name) && bytes.EqualFold(key, []byte(name)) {
				return value, true
			}
		}
	}
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.page) && marks[s.page[s.pos]]&isBlank != 0 {
		s.pos++
	}
}

// key returns the name of the attribute that begins here. An equals sign at its very beginning
// belongs to it. It is empty before a slash.
func (s *scanner) key() []byte {
	start := s.pos
	if s.page[s.pos] == '=' {
		s.pos++
	}
	for s.pos < len(s.page) && marks[s.page[s.pos]]&endsKey == 0 {
		s.pos++
	}
	return s.page[start:s.pos]
}

// beforeValue moves to the value of the attribute whose name was read, and reports whether it has
// one.
func (s *scanner) beforeValue() bool {
	if s.skipSpace(); s.pos == len(s.page) {
		return false
	}
	switch s.page[s.pos] {
	case '/':
		// It separates attributes like white space, wherever it stands.
		s.pos++
	case '=':
		s.pos++
		s.skipSpace()
		// In "href=>" the bracket ends the tag. A slash is the first byte of a value.
		return s.pos < len(s.page) && s.page[s.pos] != '>'
	}
	return false
}

// value returns the value that begins here, as it is written.
func (s *scanner) value() []byte {
	quote := s.page[s.pos]
	start := s.pos
	if quote != '"' && quote != '\'' {
		for s.pos < len(s.page) && marks[s.page[s.pos]]&endsBare == 0 {
			s.pos++
		}
		return s.page[start:s.pos]
	}
	s.pos++
	// A quote that was forgotten takes the page with it, up to the next one of its kind. What
	// browsers show then is no better.
	if !s.skipPast(quote) {
		s.pos = len(s.page)
		return nil
	}
	return s.page[start+1 : s.pos-1]
}

// mark says what a byte ends.
type mark uint8

const (
	isBlank  mark = 1 << iota
	endsName      // of a tag
	endsKey
	endsBare // a value without quotes
	mayHide  // within a tag: it ends it, or begins a value
	isOdd    // in a value: it may not stand for itself
)

var marks = func() (table [256]mark) {
	for _, c := range []byte(whitespace) {
		table[c] = isBlank | endsName | endsKey | endsBare
	}
	table['/'] = endsName | endsKey
	table['>'] = endsName | endsKey | endsBare | mayHide
	table['='] = endsKey | mayHide
	table['&'] |= isOdd
	table['\r'] |= isOdd
	table[0] |= isOdd
	for c := utf8.RuneSelf; c < len(table); c++ {
		table[c] |= isOdd
	}
	return table
}()

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
