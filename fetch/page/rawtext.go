package page

import "bytes"

// rawText skips the content of the element name, which is text in any case, up to its end tag. An
// unclosed element extends to the end of the page.
func (s *scanner) rawText(name []byte) {
	start := s.pos
	defer func() { s.content = s.page[start:s.pos] }()
	switch {
	case bytes.EqualFold(name, script):
		s.script()
		return
	case len(name) == len("plaintext"):
		s.pos = len(s.page)
		return
	}
	for s.skipPast('<') {
		if s.closes(name) {
			s.pos--
			return
		}
	}
	s.pos = len(s.page)
}

// closes reports whether the end tag of name is next, after its angle bracket.
func (s *scanner) closes(name []byte) bool {
	rest := s.page[s.pos:]
	if len(rest) < len(name)+2 || rest[0] != '/' || marks[rest[len(name)+1]]&endsName == 0 {
		return false
	}
	return bytes.EqualFold(rest[1:len(name)+1], name)
}

var script = []byte("script")

// script skips the content of a script. Early scripts are wrapped in a comment, in which they may
// write other scripts: "<!-- <script></script> -->" does not end at the first end tag. These are
// the script data states of the HTML standard.
func (s *scanner) script() {
	for s.skipPast('<') {
		if s.closes(script) {
			s.pos--
			return
		}
		if bytes.HasPrefix(s.page[s.pos:], []byte("!--")) {
			// The dashes that open the comment may close it, too.
			s.pos++
			if s.escaped() {
				return
			}
		}
	}
	s.pos = len(s.page)
}

// escaped skips a comment in a script, starting with its dashes. It reports whether the script
// ended in it, by its end tag or with the page.
func (s *scanner) escaped() (ended bool) {
	for s.pos < len(s.page) {
		switch s.page[s.pos] {
		case '-':
			if s.closesComment() {
				return false
			}
		case '<':
			s.pos++
			if ended, left := s.escapedTag(); left {
				return ended
			}
		default:
			s.pos++
		}
	}
	return true
}

// escapedTag reads the text after an angle bracket in a comment in a script. left reports that it
// ended the comment, and ended that it ended the script.
func (s *scanner) escapedTag() (ended, left bool) {
	switch {
	case s.pos == len(s.page):
		return true, true
	case s.closes(script):
		s.pos--
		return true, true
	case s.page[s.pos] == '/':
		s.pos++
	case !isAlpha(s.page[s.pos]):
		// Here the tokenizer of x/net returns to the script and not to the comment.
		return false, true
	case s.opensScript():
		s.pos += len(script)
		return false, s.doublyEscaped()
	}
	return false, false
}

// closesComment reports whether dashes and an angle bracket end the comment here. It skips them, or
// otherwise the dashes.
func (s *scanner) closesComment() bool {
	start := s.pos
	for s.pos < len(s.page) && s.page[s.pos] == '-' {
		s.pos++
	}
	if s.pos-start < 2 || s.pos == len(s.page) || s.page[s.pos] != '>' {
		return false
	}
	s.pos++
	return true
}

// opensScript reports whether the start tag of a script is next, after its angle bracket.
func (s *scanner) opensScript() bool {
	rest := s.page[s.pos:]
	return len(rest) > len(script) && bytes.EqualFold(rest[:len(script)], script) &&
		marks[rest[len(script)]]&endsName != 0
}

// doublyEscaped skips a script within the comment, including its end tag. It reports whether the
// comment ended before that.
func (s *scanner) doublyEscaped() (closed bool) {
	for s.pos < len(s.page) {
		switch s.page[s.pos] {
		case '-':
			if s.closesComment() {
				return true
			}
		case '<':
			if s.pos++; s.closes(script) {
				s.pos += len("/script>")
				return false
			}
		default:
			s.pos++
		}
	}
	return false
}
