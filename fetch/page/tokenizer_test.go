package page

import (
	"bytes"
	"iter"

	"golang.org/x/net/html"
)

// TokenizerLinks is Links over the tokenizer of golang.org/x/net/html instead of the scanner, with
// nothing in between but the walker that both share. It is what Links is compared with.
func TokenizerLinks(body []byte, base string) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		err := w.begin(base)
		z := html.NewTokenizer(bytes.NewReader(body))
		for err == nil {
			switch z.Next() {
			case html.ErrorToken:
				return
			case html.StartTagToken, html.SelfClosingTagToken:
				var t tag
				if readToken(z, &t) {
					err = w.element(&t)
				}
			}
		}
		w.end(err)
	}
}

// readToken reads the tokenizer's present tag, and reports whether it can have links.
func readToken(z *html.Tokenizer, t *tag) bool {
	name, more := z.TagName()
	switch string(name) {
	case "noscript", "noframes", "noembed":
		z.NextIsNotRawText()
		return false
	}
	if t.element, _ = elementOf(name); t.element == elemNone {
		return false
	}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if a := attrOf(key); a < attrCount {
			t.value[a] = value
			t.present |= 1 << a
		}
	}
	return true
}

// TokenizerLoop walks over all tags and attributes and does nothing with them: the floor under
// whatever finds links by the tokenizer.
func TokenizerLoop(body []byte) (attrs int) {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return attrs
		case html.StartTagToken, html.SelfClosingTagToken:
			_, more := z.TagName()
			for more {
				_, _, more = z.TagAttr()
				attrs++
			}
		}
	}
}
