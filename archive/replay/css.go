package replay

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// rewriteCSS writes a style sheet, or the value of a style attribute, with all its URLs rewritten.
//
// The output has a plain form that all parsers understand alike: no comments, only necessary
// escapes in strings, and no "<" that could start a tag if the sheet is part of a page.
func rewriteCSS(out sink, sheet string, l *linker) {
	sheet = strings.ReplaceAll(sheet, "\x00", "\uFFFD") // which is part of names
	s := sheetRewriter{in: sheet, links: l, out: out}
	for s.at < len(s.in) {
		s.token()
	}
}

// maxStyle is the longest style of an element or in SVG, in bytes, which is rewritten in memory.
const maxStyle = 1 << 20

// rewrittenCSS returns what rewriteCSS writes, or "" for a style that is too long.
func rewrittenCSS(sheet string, l *linker) string {
	if len(sheet) > maxStyle {
		return ""
	}
	var out strings.Builder
	out.Grow(len(sheet) + len(sheet)/4)
	rewriteCSS(&out, sheet, l)
	return out.String()
}

// sheetRewriter processes the tokens of a sheet, by the CSS Syntax standard as far as URLs are
// concerned. It is not safe for concurrent use.
type sheetRewriter struct {
	in    string
	at    int
	out   sink
	links *linker

	rule      string // the current at-rule, until its first string or URL
	functions []bool // the open functions: whether a string in it is a URL
}

func (s *sheetRewriter) peek(n int) byte {
	if s.at+n < len(s.in) {
		return s.in[s.at+n]
	}
	return 0
}

// token copies one token. It tries numbers first and then names, since only a whole name
// distinguishes url( from my-url(.
func (s *sheetRewriter) token() {
	c := s.peek(0)
	switch {
	case strings.HasPrefix(s.in[s.at:], "/*"):
		s.comment()
	case c == '"' || c == '\'':
		s.text()
	case c == '@' && s.startsName(1):
		s.at++
		s.atRule(s.name())
	case s.startsName(0):
		s.word(s.name())
	case isDigit(c) || (c == '-' || c == '.') && isDigit(s.peek(1)):
		s.number()
	case strings.HasPrefix(s.in[s.at:], "<!--"):
		s.at += len("<!--") // old pages hide their styles in comments
		s.apart()
	default:
		s.other(c)
	}
}

// other copies a character that is a token of its own.
func (s *sheetRewriter) other(c byte) {
	s.at++
	switch c {
	case '(':
		s.functions = append(s.functions, false)
	case ')':
		s.functions = s.functions[:max(len(s.functions)-1, 0)]
	case ';', '{', '}':
		// A broken rule must not turn the strings of later rules into URLs.
		s.rule = ""
		if c == '}' {
			s.functions = s.functions[:0]
		}
	case '<':
		s.out.WriteByte('<')
		s.afterLess()
		return
	case '\\':
		return // before a line end it means nothing
	}
	s.out.WriteByte(c)
}

// afterLess keeps a "<" from starting a tag if the sheet is part of a page. A space would be an error
// in "<=" and in a type such as <length>, so the first letter of a name is escaped.
func (s *sheetRewriter) afterLess() {
	c := s.peek(0)
	if s.startsName(0) {
		name := s.name()
		if s.peek(0) != '(' {
			first, size := utf8.DecodeRuneInString(name)
			s.writeHex(first)
			s.writeName(name[size:])
			return
		}
		s.out.WriteByte(' ')
		s.word(name)
	} else if c == 0 || c != '=' && c != '(' && !isDigit(c) && !strings.Contains(whitespace, string(c)) {
		s.out.WriteByte(' ')
	}
}

// comment skips a comment. An unclosed comment extends to the end of the sheet. An empty comment
// replaces it, since it may separate two words.
func (s *sheetRewriter) comment() {
	end := strings.Index(s.in[s.at+2:], "*/")
	if end < 0 {
		s.at = len(s.in)
		return
	}
	s.at += 2 + end + 2
	s.apart()
}

// apart takes the place of what is left out: what is around it does not become one word.
func (s *sheetRewriter) apart() { s.out.WriteString("/**/") }

// number copies a number with its unit: "1url(x)" has no URL.
func (s *sheetRewriter) number() {
	start := s.at
	if s.in[s.at] == '-' {
		s.at++
	}
	s.digits()
	if s.peek(0) == '.' && isDigit(s.peek(1)) {
		s.at++
		s.digits()
	}
	s.out.WriteString(s.in[start:s.at])
	if s.startsName(0) {
		s.writeName(s.name())
	}
}

func (s *sheetRewriter) digits() {
	for isDigit(s.peek(0)) {
		s.at++
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' ||
		c >= utf8.RuneSelf
}

// startsName reports whether a name starts n bytes on. A name may contain digits but not start with
// one.
func (s *sheetRewriter) startsName(n int) bool {
	c := s.peek(n)
	if c == '-' {
		next := s.peek(n + 1)
		return isNameByte(next) && !isDigit(next) || s.escapeAt(n+1)
	}
	return isNameByte(c) && !isDigit(c) || s.escapeAt(n)
}

// escapeAt reports whether there is an escape n bytes on: a backslash not followed by a line end.
func (s *sheetRewriter) escapeAt(n int) bool {
	return s.peek(n) == '\\' && s.at+n+1 < len(s.in) && !strings.ContainsRune("\n\r\f",
		rune(s.in[s.at+n+1]))
}

// name reads a name and resolves its escapes.
func (s *sheetRewriter) name() string {
	start := s.at
	for s.at < len(s.in) && isNameByte(s.in[s.at]) {
		s.at++
	}
	if !s.escapeAt(0) {
		return s.in[start:s.at]
	}
	name := []byte(s.in[start:s.at])
	for s.at < len(s.in) {
		switch {
		case s.escapeAt(0):
			name = utf8.AppendRune(name, s.escape())
		case isNameByte(s.in[s.at]):
			name = append(name, s.in[s.at])
			s.at++
		default:
			return string(name)
		}
	}
	return string(name)
}

// escape reads a backslash and its operand: up to six hexadecimal digits and one space, or the next
// character.
func (s *sheetRewriter) escape() rune {
	s.at++
	digits := 0
	for digits < 6 && s.at+digits < len(s.in) && strings.IndexByte(hexDigits, s.in[s.at+digits]) >= 0 {
		digits++
	}
	if digits == 0 {
		// Any other character represents itself.
		r, size := utf8.DecodeRuneInString(s.in[s.at:])
		s.at += size
		return r
	}
	value, _ := strconv.ParseInt(s.in[s.at:s.at+digits], 16, 32) // they fit
	s.at += digits
	if strings.HasPrefix(s.in[s.at:], "\r\n") {
		s.at += 2
	} else if s.at < len(s.in) && strings.IndexByte(whitespace, s.in[s.at]) >= 0 {
		s.at++
	}
	if value == 0 || !utf8.ValidRune(rune(value)) {
		return utf8.RuneError
	}
	return rune(value)
}

// atRule copies the name of an at-rule. It drops @charset, since the output is UTF-8.
func (s *sheetRewriter) atRule(name string) {
	s.rule = strings.ToLower(name)
	if s.rule == "charset" {
		if end := strings.IndexByte(s.in[s.at:], ';'); end >= 0 {
			s.at += end + 1
		} else {
			s.at = len(s.in)
		}
		s.apart()
		return
	}
	s.out.WriteByte('@')
	s.writeName(name)
}

// word copies a name, and handles url( and other functions.
func (s *sheetRewriter) word(name string) {
	if s.peek(0) != '(' {
		s.writeName(name)
		return
	}
	s.at++
	function := strings.ToLower(name)
	if function != "url" {
		s.functions = append(s.functions, urlFunctions[function])
		s.writeName(name)
		s.out.WriteByte('(')
		return
	}
	s.skipSpace()
	// With quotes it is an ordinary function, which may contain more than the URL.
	if c := s.peek(0); c == '"' || c == '\'' {
		s.functions = append(s.functions, urlFunctions[function])
		s.out.WriteString("url(")
		return
	}
	ref, ok := s.bareURL()
	if !ok {
		s.out.WriteString(`url("` + nowhere + `")!`) // as invalid: an earlier declaration counts
		return
	}
	s.out.WriteString("url(")
	s.writeText(s.mapped(ref))
	s.out.WriteByte(')')
}

// bareURL reads a URL without quotes and the closing parenthesis, or the end of the sheet, which
// closes everything. It is false if the URL has an invalid character.
func (s *sheetRewriter) bareURL() (url string, ok bool) {
	var ref strings.Builder
	bad := false
	for s.at < len(s.in) && s.in[s.at] != ')' {
		c := s.in[s.at]
		switch {
		case s.escapeAt(0):
			ref.WriteRune(s.escape())
			continue
		case c == '"' || c == '\'' || c == '(' || c == '\\':
			bad = true
		case strings.IndexByte(whitespace, c) >= 0:
			s.skipSpace()
			bad = bad || s.at < len(s.in) && s.in[s.at] != ')'
			continue
		}
		ref.WriteByte(c)
		s.at++
	}
	s.at = min(s.at+1, len(s.in))
	return ref.String(), !bad
}

func (s *sheetRewriter) skipSpace() {
	s.at = len(s.in) - len(strings.TrimLeft(s.in[s.at:], whitespace))
}

// urlFunctions are the functions in which a string is a URL.
var urlFunctions = setOf(`url src image image-set -webkit-image-set`)

// text copies a string, which may be a URL. A line end also closes it: then the quote is missing.
func (s *sheetRewriter) text() {
	quote := s.in[s.at]
	var value strings.Builder
	for s.at++; s.at < len(s.in); {
		switch c := s.in[s.at]; {
		case c == quote:
			s.at++
			s.writeString(value.String())
			return
		case c == '\n' || c == '\r' || c == '\f':
			s.writeString(value.String())
			return
		case s.escapeAt(0):
			value.WriteRune(s.escape())
		case c == '\\':
			s.at++ // the line continues
			if strings.HasPrefix(s.in[s.at:], "\r\n") {
				s.at++
			}
			s.at = min(s.at+1, len(s.in))
		default:
			value.WriteByte(c)
			s.at++
		}
	}
	s.writeString(value.String())
}

func (s *sheetRewriter) writeString(value string) {
	inside := len(s.functions) > 0 && s.functions[len(s.functions)-1]
	if inside || s.rule == "import" {
		value = s.mapped(value)
	}
	s.writeText(value)
}

// mapped returns the replacement of a URL. The URL of a @namespace is just a name. A URL that
// cannot be rewritten becomes the address of nothing, since an empty one would mean the page
// itself.
func (s *sheetRewriter) mapped(ref string) string {
	use := asImage
	switch s.rule {
	case "namespace":
		return ref
	case "import":
		use, s.rule = asDocument, "" // a layer or a condition may follow
	}
	if url, ok := s.links.rewrite(ref, use); ok {
		return url
	}
	return nowhere
}

// writeText writes a string in quotes.
func (s *sheetRewriter) writeText(value string) {
	s.out.WriteByte('"')
	for _, r := range value {
		switch {
		case r == '"' || r == '\\':
			s.out.WriteByte('\\')
			s.out.WriteRune(r)
		case r == '<' || r < ' ' || r == 0x7f:
			s.writeHex(r)
		default:
			s.out.WriteRune(r)
		}
	}
	s.out.WriteByte('"')
}

// writeName writes a name whose escapes were resolved. It adds the necessary escapes again: without
// them, a class such as ".md:flex" would be a different one.
func (s *sheetRewriter) writeName(name string) {
	for i, r := range name {
		plain := r >= utf8.RuneSelf || isNameByte(byte(r))
		first := i == 0 || i == 1 && name[0] == '-'
		if !plain || first && r < utf8.RuneSelf && isDigit(byte(r)) {
			s.writeHex(r)
		} else {
			s.out.WriteRune(r)
		}
	}
}

func (s *sheetRewriter) writeHex(r rune) {
	s.out.WriteByte('\\')
	s.out.WriteString(strconv.FormatInt(int64(r), 16))
	s.out.WriteByte(' ')
}
