package replay

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// voidElements are the elements of HTML that have no end tag.
var voidElements = setOf(`area base br col embed hr img input link meta param source track wbr`)

// asHTML returns a page with end tags of the empty elements of XHTML. In HTML, a <script/> would hide the
// rest of the page.
func asHTML(page []byte, kind string) []byte {
	if !strings.HasPrefix(strings.ToLower(kind), "application/xhtml+xml") {
		return page
	}
	var out bytes.Buffer
	out.Grow(len(page) + len(page)/8)
	z := html.NewTokenizer(bytes.NewReader(page))
	z.AllowCDATA(true)
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		tag := z.Raw()
		if kind != html.SelfClosingTagToken {
			_, _ = out.Write(tag)
			continue
		}
		z.NextIsNotRawText()
		_, _ = out.Write(bytes.TrimSuffix(tag, []byte("/>")))
		if name, _ := z.TagName(); voidElements[string(name)] {
			out.WriteString("/>")
		} else {
			out.WriteString("></" + string(name) + ">")
		}
	}
	return out.Bytes()
}
