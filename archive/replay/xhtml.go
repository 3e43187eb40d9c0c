package replay

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// voidElements are the elements of HTML that have no end tag.
var voidElements = setOf(`area base br col embed hr img input link meta param source track wbr`)

// cdata are the marks of text in which XML has no markup.
var cdata = strings.NewReplacer("<![CDATA[", "", "]]>", "")

// asHTML returns a page with end tags of the empty elements of XHTML, and without what HTML reads otherwise: CDATA,
// entities in scripts and styles, and </br>. In HTML, a <script/> would hide the rest of the page.
func asHTML(page []byte, kind string) []byte {
	if !strings.HasPrefix(strings.ToLower(kind), "application/xhtml+xml") {
		return page
	}
	var out bytes.Buffer
	out.Grow(len(page) + len(page)/8)
	z := html.NewTokenizer(bytes.NewReader(page))
	z.AllowCDATA(true)
	code := false // in a script or a style
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		tag := z.Raw()
		marked := kind == html.TextToken && bytes.Contains(tag, []byte("<![CDATA["))
		switch {
		case marked && code:
			_, _ = cdata.WriteString(&out, string(tag))
		case marked && out.Len()+5*len(tag) <= 2*len(page)+4096: // an ampersand takes five bytes
			_, _ = inText.WriteString(&out, cdata.Replace(string(tag)))
		case kind == html.TextToken && code:
			out.WriteString(html.UnescapeString(string(tag)))
		case kind != html.SelfClosingTagToken:
			name, _ := z.TagName()
			code = kind == html.StartTagToken && (string(name) == "script" || string(name) == "style")
			if kind != html.EndTagToken || !voidElements[string(name)] {
				_, _ = out.Write(tag)
			}
		default:
			z.NextIsNotRawText()
			_, _ = out.Write(bytes.TrimSuffix(tag, []byte("/>")))
			if name, _ := z.TagName(); voidElements[string(name)] {
				out.WriteString("/>")
			} else {
				out.WriteString("></" + string(name) + ">")
			}
		}
	}
	return out.Bytes()
}
