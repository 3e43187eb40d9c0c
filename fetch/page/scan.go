package page

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// scanner finds the start tags of a page and skips everything else. It follows the states of
// golang.org/x/net/html's tokenizer, so it finds the same tags. It is faster because it copies
// nothing, and because it only looks for the end of most of a page: text, and the attributes of
// most tags.
//
// The meaning of a tag depends on its context only in SVG, see svg.go.
type scanner struct {
	page []byte
	pos  int
	tag  tag
	buf  []byte // for attribute values that must be decoded

	xml     bool               // in XHTML, a tag that ends with a slash has no content
	decoder *decoder           // for values that are not ASCII
	content []byte             // of the last element with raw text
	ids     bool               // tags with an id are of interest
	text    func(piece []byte) // called with the text; may be nil
	begun   bool               // there was some text
	block   bool               // a block began or ended since
	hidden  int                // open template elements, whose content is for scripts
	svg     svg
}

// next moves to the next start tag that can have links, and reports whether there is one.
func (s *scanner) next() bool {
	for {
		i := bytes.IndexByte(s.page[s.pos:], '<')
		if s.text != nil {
			s.piece(i)
		}
		if i < 0 {
			return false
		}
		if s.pos += i + 1; s.pos == len(s.page) {
			s.bracket()
			return false
		}
		// Any other bracket is text, such as that of "1 < 2".
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
			// XML and PHP instructions are comments in HTML. They have no quotes that could hide
			// their end.
			if !s.skipPast('>') {
				return false
			}
		default:
			s.bracket()
		}
	}
}

// bracket passes the bracket just read to text.
func (s *scanner) bracket() {
	if s.text != nil {
		s.pos--
		s.piece(1)
		s.pos++
	}
}

// piece passes the next n bytes to text, or all that are left if n is negative.
func (s *scanner) piece(n int) {
	piece := s.page[s.pos:]
	if n >= 0 {
		piece = piece[:n]
	}
	s.pass(piece, true)
}

// pass passes a piece of the page to text, with its references resolved if it may have some.
func (s *scanner) pass(piece []byte, references bool) {
	switch blank := len(trimmed(piece)) == 0; {
	case len(piece) == 0, s.hidden > 0, s.svg.code, blank && (s.block || !s.begun):
		return
	case s.block && s.begun:
		s.text(lineEnd)
	}
	s.begun, s.block = true, false
	piece = s.decoder.text(piece)
	if references && bytes.IndexByte(piece, '&') >= 0 {
		piece = []byte(html.UnescapeString(string(piece)))
	}
	s.text(piece)
}

var lineEnd = []byte{'\n'}

// border notes where a block begins or ends.
func (s *scanner) border(name []byte) {
	s.block = s.block || !isInline(name)
}

// skipPast moves past the next c, and reports whether there is one.
func (s *scanner) skipPast(c byte) bool {
	i := bytes.IndexByte(s.page[s.pos:], c)
	s.pos += i + 1
	return i >= 0
}

// startTag reads the tag whose name is next. found reports that it is of interest, and ok that the
// page does not end within it: an incomplete tag does not count.
func (s *scanner) startTag() (found, ok bool) {
	name := s.name()
	class := classOf(name)
	if s.text != nil {
		s.border(name)
	}
	if s.svg.depth > 0 || class.svg {
		return s.svgTag(name, class)
	}
	return s.htmlTag(name, class)
}

// isShadowRoot reports whether a template with these attributes is shown in place of its parent.
func isShadowRoot(attributes []byte) bool {
	return bytes.Contains(bytes.ToLower(attributes), []byte("shadowrootmode"))
}

// htmlTag reads the rest of the tag of an HTML element, and its content if that is raw text.
func (s *scanner) htmlTag(name []byte, class nameClass) (found, ok bool) {
	from := s.pos
	if found = class.element != elemNone || s.ids; found {
		ok = s.attributes(class.element, false)
	} else {
		ok = s.skipAttributes()
	}
	// A slash at the end of the tag changes nothing: in HTML, <script/> is not closed.
	if ok && class.raw && !(s.xml && s.selfClosing()) {
		s.rawText(name)
		if class.shown && s.text != nil {
			s.pass(s.content, len(name) == len("textarea"))
		}
	}
	if ok && class.template && !(s.xml && s.selfClosing()) &&
		(s.hidden > 0 || !isShadowRoot(s.page[from:s.pos])) {
		s.hidden++
	}
	return found, ok
}

// selfClosing reports whether the tag just read ends with a slash. Like the tokenizer, it does so
// even if the slash belongs to an unquoted value.
func (s *scanner) selfClosing() bool { return s.page[s.pos-2] == '/' }

// endTag skips the rest of a tag that starts with "</". Its attributes are ignored, but their
// quotes hide angle brackets.
func (s *scanner) endTag() bool {
	s.pos++
	switch {
	case s.pos == len(s.page):
		return false
	case isAlpha(s.page[s.pos]):
		name := s.name()
		if !s.skipAttributes() {
			return false
		}
		if s.text != nil {
			s.border(name)
		}
		if s.hidden > 0 && classOf(name).template {
			s.hidden--
		}
		if s.svg.depth > 0 {
			s.svgEnd(name)
		}
		return true
	}
	return s.skipPast('>')
}

// name returns the name of the tag at the current position, as written.
func (s *scanner) name() []byte {
	start := s.pos
	for s.pos < len(s.page) && marks[s.page[s.pos]]&endsName == 0 {
		s.pos++
	}
	return s.page[start:s.pos]
}

// declaration skips text that starts with "<!": a comment, a CDATA section where one is allowed, or
// otherwise up to the next angle bracket.
func (s *scanner) declaration() bool {
	s.pos++
	rest := s.page[s.pos:]
	if bytes.HasPrefix(rest, []byte("[CDATA[")) && (s.xml || s.svg.depth > 0) {
		s.pos += len("[CDATA[")
		section, _, ok := bytes.Cut(s.page[s.pos:], []byte("]]>"))
		if s.text != nil {
			s.pass(section, false)
		}
		s.pos += len(section) + len("]]>")
		return ok
	}
	if !bytes.HasPrefix(rest, []byte("--")) {
		return s.skipPast('>')
	}
	s.pos += len("--")
	start := s.pos
	for s.skipPast('>') {
		// "<!-->" and "<!--->" count as empty comments.
		text := s.page[start : s.pos-1]
		if len(text) == 0 || len(text) == 1 && text[0] == '-' ||
			bytes.HasSuffix(text, []byte("--")) || bytes.HasSuffix(text, []byte("--!")) {
			return true
		}
	}
	return false
}

// skipAttributes moves past the tag, and reports whether it has an end.
//
// Only the text after an equals sign can hide an angle bracket. An equals sign that could start a
// name is left to skipAttribute, which knows the states of the tokenizer, with all attributes before
// it: looking for it again after each of them would take quadratic time.
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
			equals := s.pos
			for s.pos = begin; s.pos <= equals; {
				if !s.skipAttribute() {
					return false
				}
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

// skipAttribute moves past an attribute, or past the rest of a tag without one. It reports whether
// the page continues.
func (s *scanner) skipAttribute() bool {
	if s.skipSpace(); s.pos < len(s.page) && s.page[s.pos] != '>' {
		s.key()
		if s.beforeValue() {
			s.value()
		}
	}
	return s.pos < len(s.page)
}

// attributes reads the attributes of an element, moves past the tag, and reports whether it has an
// end.
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

func (s *scanner) skipSpace() {
	for s.pos < len(s.page) && marks[s.page[s.pos]]&isBlank != 0 {
		s.pos++
	}
}

// key returns the name of the attribute at the current position. A leading equals sign is part of
// it. It is empty before a slash.
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

// beforeValue moves to the value of the attribute whose name was just read, and reports whether it
// has one.
func (s *scanner) beforeValue() bool {
	if s.skipSpace(); s.pos == len(s.page) {
		return false
	}
	switch s.page[s.pos] {
	case '/':
		// A slash separates attributes like white space.
		s.pos++
	case '=':
		s.pos++
		s.skipSpace()
		// In "href=>" the bracket ends the tag. A slash is the first byte of a value.
		return s.pos < len(s.page) && s.page[s.pos] != '>'
	}
	return false
}

// value returns the value at the current position, as written.
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
	// A forgotten quote takes the page with it, up to the next quote of its kind. Browsers do the
	// same.
	if !s.skipPast(quote) {
		s.pos = len(s.page)
		return nil
	}
	return s.page[start+1 : s.pos-1]
}

// mark says what a byte terminates.
type mark uint8

const (
	isBlank  mark = 1 << iota
	endsName      // of a tag
	endsKey
	endsBare // a value without quotes
	mayHide  // in a tag: ends it, or starts a value
	isOdd    // in a value: may need decoding
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
