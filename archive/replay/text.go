package replay

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// blocks are the elements that start a new line.
var blocks = setOf(`address article aside blockquote body br button caption
	center dd details dialog dir div dl dt fieldset figcaption figure footer form frameset h1 h2
	h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext
	pre search section select summary table tbody td tfoot th thead title tr ul video xmp`)

// silent are the elements whose text is not visible.
var silent = setOf(`script style iframe noembed noframes`)

// preformatted are the elements in which a line break of the source is one of the page.
var preformatted = setOf(`pre listing xmp plaintext textarea`)

// visibleText returns the lines of text of a page as a person would read them: without markup, with
// single spaces, and with the alternative texts of images. It ends after more than maxLines.
func visibleText(page []byte) []string {
	var t textLines
	var foreign foreignElements
	var hidden templates
	z := html.NewTokenizer(bytes.NewReader(page))
	for quiet := false; len(t.lines) <= maxLines; z.AllowCDATA(foreign.inside()) {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			t.wrap()
			return t.lines
		case html.TextToken:
			if !quiet && hidden.open == 0 && !foreign.hidesText() {
				t.text(string(z.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, attrs := readTag(z)
			raw, _ := foreign.start(z, name, attrs, kind == html.SelfClosingTagToken)
			quiet = raw && silent[name]
			t.tag(name)
			if preformatted[name] {
				t.pre++
			}
			hidden.start(name, attrs, foreign)
			if alt := value(attrs, "alt"); (name == "img" || name == "input" && strings.EqualFold(value(attrs, "type"), "image")) && alt != "" && hidden.open == 0 {
				t.line.WriteString(" [" + alt + "] ")
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			hidden.end(string(name), &foreign)
			quiet = false
			t.tag(string(name))
			if preformatted[string(name)] {
				t.pre = max(t.pre-1, 0)
			}
		}
	}
	return t.lines
}

// textLines collects lines like a browser with an infinitely wide window: texts without a block
// between them are on the same line. It is not safe for concurrent use.
type textLines struct {
	lines []string
	line  strings.Builder
	pre   int // how many elements are open in which line breaks count
}

// text adds a text to the line, and in preformatted text to new lines.
func (t *textLines) text(text string) {
	if t.pre == 0 {
		t.line.WriteString(text)
		return
	}
	for part := range strings.Lines(text) {
		t.line.WriteString(part)
		if strings.HasSuffix(part, "\n") {
			t.wrap()
		}
		if len(t.lines) > maxLines {
			return
		}
	}
}

func (t *textLines) tag(name string) {
	if blocks[name] {
		t.wrap()
	}
}

// wrap ends a line, if there is anything on it.
func (t *textLines) wrap() {
	if text := strings.Join(strings.Fields(t.line.String()), " "); text != "" {
		t.lines = append(t.lines, text)
	}
	t.line.Reset()
}

// wideLine is the length from which a line of source is broken at its tags: generated pages are
// often a single line.
const wideLine = 200

// goesOn ends a part of a line that was broken. A break there is a change: in some languages it has a
// meaning.
const goesOn = "\n"

// sourceLines returns the lines of a source. It ends after more than maxLines.
func sourceLines(source string) (lines []string) {
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\r\n")
		for len(line) > wideLine && len(lines) <= maxLines {
			n := strings.IndexAny(line[1:], "<{}")
			if n < 0 {
				break
			}
			lines = append(lines, line[:n+1]+goesOn)
			line = line[n+1:]
		}
		if lines = append(lines, line); len(lines) > maxLines {
			break
		}
	}
	return lines
}
