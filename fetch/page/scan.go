package page

import "bytes"

// scanner finds the start tags of a page, and nothing else of it. It reads the page as the
// tokenizer of golang.org/x/net/html does, state by state, so that the tags are the same ones. It
// is faster because it copies nothing and because most bytes of a page are of no interest: texts,
// and the attributes of most tags, are searched for their end and not looked at.
type scanner struct {
	page []byte
	pos  int
	tag  tag
	buf  []byte // for values of the tag that are not written as they are meant

	content []byte             // of the last element whose content is text
	text    func(piece []byte) // called with the texts between tags; nil if nobody wants them
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
	if len(trimmed(text)) > 0 {
		s.text(text)
	}
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
	name := s.name()
	element, raw := elementOf(name)
	if found = element != elemNone; found {
		s.tag = tag{element: element}
		s.buf = s.buf[:0]
		ok = s.attributes()
	} else {
		ok = s.skipAttributes()
	}
	// A slash at the end of the tag changes nothing: in HTML <script/> is not closed.
	if ok && raw {
		s.rawText(name)
	}
	return found, ok
}

// endTag skips the rest of a tag that begins with "</". Its attributes count for nothing, but their
// quotes hide angle brackets.
func (s *scanner) endTag() bool {
	s.pos++
	switch {
	case s.pos == len(s.page):
		return false
	case isAlpha(s.page[s.pos]):
		s.name()
		return s.skipAttributes()
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

// declaration skips what begins with "<!": a comment, or else up to the next angle bracket.
func (s *scanner) declaration() bool {
	s.pos++
	if !bytes.HasPrefix(s.page[s.pos:], []byte("--")) {
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
func (s *scanner) skipAttributes() bool {
	// Most tags have none.
	if s.pos < len(s.page) && s.page[s.pos] == '>' {
		s.pos++
		return true
	}
	for {
		if s.skipSpace(); s.pos == len(s.page) {
			return false
		}
		if s.page[s.pos] == '>' {
			s.pos++
			return true
		}
		s.key()
		if s.beforeValue() {
			s.value()
		}
	}
}

// attributes reads the attributes of the tag and moves behind it, and reports whether it has an
// end.
func (s *scanner) attributes() bool {
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
			s.tag.value[a] = s.decoded(value)
			s.tag.present |= 1 << a
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
)

var marks = func() (table [256]mark) {
	for _, c := range []byte(whitespace) {
		table[c] = isBlank | endsName | endsKey | endsBare
	}
	table['/'] = endsName | endsKey
	table['>'] = endsName | endsKey | endsBare
	table['='] = endsKey
	return table
}()

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
