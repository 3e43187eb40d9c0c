package replay

import (
	"bytes"
	"io"
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// maxNesting bounds the nesting of documents in attributes of documents, and maxNested their length
// in bytes.
const maxNesting, maxNested = 3, 256 << 10

// sink is what rewritten content is written to. Errors are ignored: a buffer has none, and a
// browser may disconnect.
type sink interface {
	io.Writer
	io.ByteWriter
	io.StringWriter
	WriteRune(rune) (int, error)
}

// rewriteHTML writes a page in UTF-8 with all its URLs rewritten. What it writes is at most a small
// multiple of the page, and is not kept in memory.
//
// Every tag and every text is written again in a plain form that all parsers understand alike:
// every "<" that starts a tag has been examined here. So even where the tokenizer and a browser
// disagree about broken markup, they agree about the output.
func rewriteHTML(out sink, page []byte, l *linker) {
	// When a link is followed, a browser applies the first base even to links before it.
	own := *l
	own.rebase(page)
	p := &pageRewriter{links: &own, out: out}
	p.run(page)
}

// rebase changes the base to that of a page with a base element.
func (l *linker) rebase(page []byte) {
	if ref, ok := findBase(page, l.scripts); ok {
		if base, err := weburl.Parse(ref, &l.base); err == nil && weburl.IsWeb(&base) {
			l.base = base
		}
	}
}

// findBase returns the URL of the first base element with one. Pages rarely have such an element,
// so most are not tokenized for it.
func findBase(page []byte, scripts bool) (ref string, ok bool) {
	if !bytes.Contains(bytes.ToLower(page), []byte("<base")) {
		return "", false
	}
	for name, attrs := range startTags(page, scripts) {
		if name == "base" && has(attrs, "href") {
			return value(attrs, "href"), true
		}
	}
	return "", false
}

// startTags returns the names of the start tags of HTML in a page, as readTag does, with their
// attributes. Those in templates are no part of it. scripts says whether the page is shown with its scripts.
func startTags(page []byte, scripts bool) iter.Seq2[string, []attribute] {
	return func(yield func(string, []attribute) bool) {
		var hidden templates
		var foreign foreignElements
		z := html.NewTokenizer(bytes.NewReader(page))
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			if kind == html.EndTagToken {
				name, _ := z.TagName()
				hidden.end(string(name), &foreign)
			}
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			name, attrs := readTag(z)
			if name != "noscript" || !scripts {
				foreign.start(z, name, attrs, kind == html.SelfClosingTagToken)
			}
			hidden.start(name, attrs, foreign)
			if hidden.open == 0 && !foreign.inside() && !yield(name, attrs) {
				return
			}
		}
	}
}

// templates counts the open template elements, whose content is for scripts, but for that which is
// shown in place of its parent. In SVG and MathML a template is an ordinary element. It is not safe for
// concurrent use.
type templates struct{ open, around int } // around is how many foreign elements the first one is in

func (t *templates) start(name string, attrs []attribute, f foreignElements) {
	if name != "template" || f.inside() || t.open == 0 && has(attrs, "shadowrootmode") {
		return
	}
	if t.open++; t.open == 1 {
		t.around = len(f)
	}
}

// end closes an element, and with a template all in it.
func (t *templates) end(name string, f *foreignElements) {
	before := len(*f)
	if f.end(name); name != "template" || t.open == 0 || len(*f) < before {
		return
	}
	if t.open--; t.open == 0 {
		*f = (*f)[:min(len(*f), t.around)]
	}
}

// maxAttributes bounds the number of attributes of a tag, since each is compared with all previous
// ones.
const maxAttributes = 200

// readTag returns the name of the current tag in lower case, and its attributes. If two have the
// same name, the first one counts, as in browsers.
func readTag(z *html.Tokenizer) (name string, attrs []attribute) {
	raw, more := z.TagName()
	name = string(raw)
	for more {
		var key, val []byte
		key, val, more = z.TagAttr()
		if len(attrs) == maxAttributes {
			break
		}
		if n := string(key); isPlainName(n) && !has(attrs, n) {
			attrs = append(attrs, attribute{n, string(val)})
		}
	}
	return name, attrs
}

func has(attrs []attribute, name string) bool {
	return slices.ContainsFunc(attrs, func(a attribute) bool { return a.name == name })
}

// pageRewriter processes the tokens of a page. It is not safe for concurrent use.
type pageRewriter struct {
	links *linker
	z     *html.Tokenizer
	out   sink
	depth int // of documents in attributes

	raw     string // the element whose raw text comes next
	foreign foreignElements
	sheet   strings.Builder // of the open style in SVG: comments and tags divide its text, but not its words
}

func (p *pageRewriter) run(page []byte) {
	p.z = html.NewTokenizer(bytes.NewReader(page))
	for {
		kind := p.z.Next()
		if kind != html.TextToken && kind != html.EndTagToken {
			p.raw = ""
		}
		switch kind {
		case html.ErrorToken:
			p.writeSheet()
			return
		case html.TextToken:
			p.text()
		case html.StartTagToken, html.SelfClosingTagToken:
			p.start(kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			p.end()
			p.raw = ""
		case html.CommentToken:
			if p.links.scripts { // some scripts search for comments
				p.out.WriteString("<!-")
				_, _ = inComment.WriteString(p.out, "-"+string(p.z.Text()))
				p.out.WriteString("-->")
			}
		case html.DoctypeToken:
			p.doctype()
		}
		p.z.AllowCDATA(p.foreign.inside())
	}
}

// doctype copies the part that determines the layout mode of browsers.
func (p *pageRewriter) doctype() {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' {
			return ' '
		}
		return r
	}, string(p.z.Text()))
	p.out.WriteString("<!DOCTYPE " + text + ">")
}

// inText, inValue and inComment escape characters that could be mistaken for markup.
var (
	inText  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;", "\x00", "")
	inValue = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;",
		"\r", "&#13;", "\x00", "\uFFFD")
	inComment = strings.NewReplacer("&", "&amp;", "->", "-&gt;", "!>", "!&gt;")
)

// text copies text.
func (p *pageRewriter) text() {
	text := string(p.z.Text())
	switch inStyle := p.foreign.inStyle(); p.raw {
	case "script":
		if p.links.scripts && !inStyle {
			p.out.WriteString(text)
		}
	case "style":
		rewriteCSS(p.out, text, p.links)
	case "iframe", "noembed", "noframes": // shown only by browsers of the last century
	default:
		if !inStyle {
			_, _ = inText.WriteString(p.out, text)
		} else if p.sheet.Len() <= maxStyle {
			p.sheet.WriteString(text)
		}
	}
}

// writeSheet writes the style in SVG that ends.
func (p *pageRewriter) writeSheet() {
	_, _ = inText.WriteString(p.out, rewrittenCSS(p.sheet.String(), p.links))
	p.sheet.Reset()
}

// start copies a start tag, or drops it.
func (p *pageRewriter) start(selfClosing bool) {
	name, attrs := readTag(p.z)
	before := p.foreign.inStyle()
	raw, inStyle := p.foreign.start(p.z, name, attrs, selfClosing)
	if raw {
		p.raw = name
	}
	p.closeStyle(before && !inStyle)
	attrs, ok := p.element(name, attrs)
	if !ok || inStyle {
		return
	}
	p.out.WriteByte('<')
	p.out.WriteString(shown(name))
	for _, a := range attrs {
		p.out.WriteByte(' ')
		p.out.WriteString(a.name)
		p.out.WriteString(`="`)
		_, _ = inValue.WriteString(p.out, a.value)
		p.out.WriteByte('"')
	}
	if selfClosing {
		p.out.WriteString(" /")
	}
	p.out.WriteByte('>')
}

// shown returns the replacement of an element: two elements show markup as text but do not decode
// entities, so text could not be escaped in them.
func shown(name string) string {
	if name == "xmp" || name == "plaintext" {
		return "pre"
	}
	return name
}

// hidden are elements that are removed. The base is resolved.
func (p *pageRewriter) hidden(name string) bool {
	switch name {
	case "base", "noembed", "noframes":
		return true
	case "script":
		return !p.links.scripts
	}
	return !isPlainName(name)
}

// element returns the attributes that an element keeps, or false if the element must go.
func (p *pageRewriter) element(name string, attrs []attribute) ([]attribute, bool) {
	if p.hidden(name) {
		return nil, false
	}
	switch name {
	case "script":
		if strings.EqualFold(strings.TrimSpace(value(attrs, "type")), "speculationrules") {
			p.raw = "noframes" // its text, with URLs to prefetch, is dropped too
			return nil, false
		}
		if p.links.charset != "" && has(attrs, "src") && !has(attrs, "charset") { // its default
			attrs = append(attrs, attribute{"charset", p.links.charset})
		}
	case "meta":
		return p.meta(attrs)
	case "link":
		return p.linked(attrs)
	}
	return p.attributes(name, attrs), true
}

// meta keeps descriptions of the page, and a refresh. The page's own policy would forbid parts of
// the replay, and its encoding is no longer the original one.
func (p *pageRewriter) meta(attrs []attribute) ([]attribute, bool) {
	name := strings.TrimSpace(value(attrs, "name"))
	if has(attrs, "charset") || strings.EqualFold(name, "referrer") {
		return nil, false
	}
	if !has(attrs, "http-equiv") {
		return p.attributes("meta", attrs), true
	}
	switch strings.ToLower(strings.TrimSpace(value(attrs, "http-equiv"))) {
	case "content-language", "default-style", "x-ua-compatible":
		return p.attributes("meta", attrs), true
	case "refresh":
		content, ok := p.links.refresh(value(attrs, "content"))
		return []attribute{{"http-equiv", "refresh"}, {"content", content}}, ok
	}
	return nil, false
}

// linked keeps style sheets and icons, and without the other relations, which point outside the archive
// or prefetch. Some sheets are preloaded, and a script makes them sheets.
func (p *pageRewriter) linked(attrs []attribute) ([]attribute, bool) {
	use, rels := asLink, ""
	for rel := range strings.FieldsSeq(strings.ToLower(value(attrs, "rel"))) {
		switch rel {
		case "stylesheet":
			use = asDocument
		case "preload":
			if !p.links.scripts || !strings.EqualFold(value(attrs, "as"), "style") {
				continue
			}
			use = asDocument
		case "icon", "apple-touch-icon", "mask-icon":
			use = max(use, asImage)
		case "alternate", "shortcut":
		default:
			continue
		}
		rels += " " + rel
	}
	url, ok := p.links.rewrite(value(attrs, "href"), use)
	if use == asLink || !ok {
		return nil, false
	}
	var out []attribute
	for _, a := range attrs {
		switch a.name {
		case "rel":
			out = append(out, attribute{"rel", rels[1:]})
		case "onload", "onerror":
			if p.links.scripts {
				out = append(out, a)
			}
		case "media", "type", "title", "sizes", "id", "class", "disabled", "as":
			out = append(out, a)
		case "href":
			out = append(out, attribute{"href", url})
		}
	}
	return out, true
}

// nested rewrites a document in an attribute. Without a base of its own, its URLs are relative to the
// page around it.
func (p *pageRewriter) nested(page string) (string, bool) {
	if p.depth >= maxNesting || len(page) > maxNested {
		return "", false
	}
	var out strings.Builder
	q := &pageRewriter{links: p.links, depth: p.depth + 1, out: &out}
	around := p.links.base
	p.links.rebase([]byte(page))
	q.run([]byte(page))
	p.links.base = around
	return out.String(), true
}

// closeStyle writes a style in SVG that was closed, and its end tag, so that parsers without SVG find
// its end in the right place.
func (p *pageRewriter) closeStyle(closed bool) {
	if closed {
		p.writeSheet()
		p.out.WriteString("</style>")
	}
}

// end copies an end tag.
func (p *pageRewriter) end() {
	raw, _ := p.z.TagName()
	name := string(raw)
	inStyle := p.foreign.inStyle()
	p.foreign.end(name)
	p.closeStyle(inStyle && !p.foreign.inStyle())
	if p.hidden(name) || inStyle && (name == "style" || p.foreign.inStyle()) {
		return
	}
	p.out.WriteString("</" + shown(name) + ">")
}
