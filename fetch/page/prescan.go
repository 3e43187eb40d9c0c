package page

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/internal/charset"
)

// prescanned is the length of the prefix of a page that may declare its encoding.
const prescanned = 1024

// prescan looks for a meta element that declares the encoding: the HTML standard's "prescan a byte
// stream to determine its encoding" (13.2.3.2).
func prescan(head []byte) (c *charset.Charset, ok bool) {
	p := prescanner{scanner{page: head}}
	for {
		if !p.skipPast('<') || p.pos == len(head) {
			return nil, false
		}
		rest := head[p.pos:]
		switch {
		case bytes.HasPrefix(rest, []byte("!--")):
			// The dashes that open the comment may close it.
			end := bytes.Index(rest[1:], []byte("-->"))
			if end < 0 {
				return nil, false
			}
			p.pos += 1 + end + len("-->")
		case len(rest) > 4 && bytes.EqualFold(rest[:4], []byte("meta")) &&
			(isSpace(rest[4]) || rest[4] == '/'):
			p.pos += 4
			if c, ok := p.meta(); ok {
				return c, true
			}
		case isAlpha(rest[0]), rest[0] == '/' && len(rest) > 1 && isAlpha(rest[1]):
			for p.pos < len(head) && !isSpace(head[p.pos]) && head[p.pos] != '>' {
				p.pos++
			}
			for more := true; more; {
				_, _, more = p.attribute()
			}
		case rest[0] == '!', rest[0] == '/', rest[0] == '?':
			if !p.skipPast('>') {
				return nil, false
			}
		}
	}
}

// prescanner reads attributes by the rules of the prescan, which are simpler than a tokenizer's.
type prescanner struct{ scanner }

// meta reads the attributes of a meta element.
func (p *prescanner) meta() (c *charset.Charset, ok bool) {
	var seen []string
	pragma, needsPragma := false, false
	for {
		name, value, more := p.attribute()
		if !more {
			break
		}
		name = strings.ToLower(name)
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		switch name {
		case "http-equiv":
			pragma = strings.EqualFold(value, "content-type")
		case "content":
			if label := charsetOfContent(value); label != "" && !ok {
				if c, ok = charset.Named(label); ok {
					needsPragma = true
				}
			}
		case "charset":
			c, ok = charset.Named(value)
			needsPragma = false
		}
	}
	cut := p.pos == len(p.page) // a tag cut off by the end of the prefix declares nothing
	if !ok || cut || needsPragma && !pragma {
		return nil, false
	}
	return c.AsDeclared(), true
}

// attribute reads the next attribute. more is false at the end of the tag.
func (p *prescanner) attribute() (name, value string, more bool) {
	for p.pos < len(p.page) && (isSpace(p.page[p.pos]) || p.page[p.pos] == '/') {
		p.pos++
	}
	if p.pos == len(p.page) || p.page[p.pos] == '>' {
		return "", "", false
	}
	start := p.pos
	for p.pos < len(p.page) && (p.page[p.pos] != '=' || p.pos == start) && p.page[p.pos] != '/' &&
		p.page[p.pos] != '>' && !isSpace(p.page[p.pos]) {
		p.pos++
	}
	name = string(p.page[start:p.pos])
	p.skipSpace()
	if p.pos == len(p.page) || p.page[p.pos] != '=' {
		return name, "", true
	}
	p.pos++
	if p.skipSpace(); p.pos == len(p.page) {
		return name, "", true
	}
	if quote := p.page[p.pos]; quote == '"' || quote == '\'' {
		p.pos++
		start = p.pos
		if !p.skipPast(quote) {
			p.pos = len(p.page)
			return name, "", false
		}
		return name, string(p.page[start : p.pos-1]), true
	}
	start = p.pos
	for p.pos < len(p.page) && !isSpace(p.page[p.pos]) && p.page[p.pos] != '>' {
		p.pos++
	}
	return name, string(p.page[start:p.pos]), true
}

// charsetOfContent returns the label in the content of a meta element: the standard's "algorithm
// for extracting a character encoding from a meta element" (2.6.5).
func charsetOfContent(s string) string {
	for {
		i := indexFold(s, "charset")
		if i < 0 {
			return ""
		}
		s = strings.TrimLeft(s[i+len("charset"):], whitespace)
		if !strings.HasPrefix(s, "=") {
			continue
		}
		s = strings.TrimLeft(s[1:], whitespace)
		if s == "" {
			return ""
		}
		if s[0] == '"' || s[0] == '\'' {
			label, _, ok := strings.Cut(s[1:], s[:1])
			if !ok {
				return ""
			}
			return label
		}
		if end := strings.IndexAny(s, whitespace+";"); end >= 0 {
			s = s[:end]
		}
		return s
	}
}

// indexFold returns where in s the ASCII word is, in any case, or -1.
func indexFold(s, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
