package page

import (
	"bytes"
	"iter"
	"strings"

	"golang.org/x/net/html"
)

// TreeLinks is like Scan, but walks the tree of golang.org/x/net/html instead of using the scanner.
// Both share only the walker. body is UTF-8. Elements that the parser has copied are yielded twice,
// and foster-parented elements early.
func TreeLinks(body []byte, base string, opts Options) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		w.opts = opts
		err := w.begin(base)
		w.decoder.known = true
		if err == nil {
			err = w.tree(body)
		}
		w.end(err)
	}
}

func (w *walker) tree(body []byte) error {
	root, err := html.ParseWithOptions(bytes.NewReader(body), html.ParseOptionEnableScripting(false))
	if err != nil {
		return err
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		var text strings.Builder
		for c := range n.ChildNodes() {
			if c.Type == html.TextNode {
				text.WriteString(c.Data)
			}
		}
		w.scan.content = []byte(text.String())
		if t, ok := tagOf(n); ok {
			err = w.element(&t)
		} else if n.Data == "noframes" || n.Data == "noembed" {
			err = w.tree([]byte(text.String()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var svgLinks = map[string]element{
	"a": elemAnchor, "image": elemGraphic, "use": elemGraphic, "feimage": elemGraphic, "script": elemGraphic,
}

// tagOf returns the tag of an element of the tree, and whether it can have links.
func tagOf(n *html.Node) (t tag, ok bool) {
	switch {
	case n.Namespace == "" && n.Data == "frame":
		t.element = elemFrame
	case n.Namespace == "":
		t.element = classOf([]byte(n.Data)).element
	case n.Namespace == "svg":
		t.foreign = true
		t.element = svgLinks[strings.ToLower(n.Data)]
	}
	for _, a := range n.Attr {
		key := a.Key
		if a.Namespace != "" {
			key = a.Namespace + ":" + a.Key
		}
		if a2 := attrOf([]byte(key)); a2 < attrCount && !t.has(a2) {
			t.value[a2] = []byte(a.Val)
			t.present |= 1 << a2
		}
	}
	return t, t.element != elemNone
}

// TokenizerLoop iterates over all tags and attributes and does nothing with them: a lower bound for
// any link finder that uses the tokenizer.
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
